// What the person at the page has done: the query at hand, the saved ones, how the map is to look.
// Every part of the page reads it from here and is told when it changes.

export const START = {
  current: null,
  saved: [],
  tool: "move",
  detail: 0, // 0: chosen by the noise
  fade: true,
  compare: "", // "", "swipe" or "difference"
  versus: "",
  part: 0.5,
  steps: 0, // that can be undone
};

const MOST_STEPS = 50;

export class State {
  #listeners = [];
  #past = [];

  constructor(values) {
    this.values = { ...START, ...values };
  }

  on(names, then) {
    this.#listeners.push([names.split(" "), then]);
  }

  set(change) {
    const changed = Object.keys(change).filter((name) => this.values[name] !== change[name]);
    if (!changed.length) return;
    Object.assign(this.values, change);
    for (const [names, then] of this.#listeners) {
      if (names.some((name) => changed.includes(name))) then(this.values);
    }
  }

  // A change of queries that can be undone; `before` is what undoing brings back, where the query was
  // shown while it was still being drawn.
  keep(change, before = this.values.current) {
    this.#past.push({ current: before, saved: this.values.saved });
    if (this.#past.length > MOST_STEPS) this.#past.shift();
    this.set({ ...change, steps: this.#past.length });
  }

  undo() {
    const before = this.#past.pop();
    if (before) this.set(before);
    this.set({ steps: this.#past.length });
    return Boolean(before);
  }
}

let last = 0;
const fresh = () => `q${(last += 1)}`;

// A query about rows r0..r1 and columns c0..c1; `dragged` are the lines that were asked for.
export const rectangleQuery = (cells, dragged = null, more = {}) => ({
  id: fresh(), kind: "cells", cells, dragged, name: "", ...more,
});

// A query about an area as drawn: rings of longitude and latitude, held to a millionth of a degree so
// that a link brings back the same. Several parts are several lists of rings.
export const shapeQuery = (parts, more = {}) => ({
  id: fresh(), kind: "shape", name: "",
  parts: parts.map((rings) => rings.map((ring) => opened(ring.map(([x, y]) => [held(x), held(y)])))),
  ...more,
});

// Cells of a partition, by their labels.
export const labelsQuery = (label, more = {}) => ({ id: fresh(), kind: "label", label, name: String(label), ...more });

const held = (v) => Math.round(v * 1e6) / 1e6;

function opened(ring) {
  const [a, b] = [ring[0], ring.at(-1)];
  return ring.length > 3 && a[0] === b[0] && a[1] === b[1] ? ring.slice(0, -1) : ring;
}
