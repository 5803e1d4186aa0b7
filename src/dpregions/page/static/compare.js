// Two releases on the same grid: swiped, or their difference. Of a difference the ends are the worst
// of both: low of one less high of the other. What the map fades by holds with 90 %, as it comes from
// two intervals of 95 %, and the legend says so; what the panel says comes from two of 97.5 %, and
// holds with 95 %.

import { Counts, blockFigures, unpackEnds } from "./grid_math.js";
import { element, isKnown, number, sure } from "./words.js";

const sameGrid = (a, b) => a.grid && b.grid && JSON.stringify([a.grid, a.crs]) === JSON.stringify([b.grid, b.crs]);

export class Compare {
  constructor(view, release, transport, state, cells) {
    Object.assign(this, { view, release, transport, state, cells });
    this.line = element("input", { type: "range", id: "swipe", min: 0, max: 1000, value: 500, ariaLabel: "Swipe between the two releases", hidden: true });
    this.line.addEventListener("input", () => state.set({ part: this.line.value / 1000 }));
    this.edge = element("div", { id: "swipe-edge", hidden: true });
    view.element.append(this.edge, this.line);
    this.byBlock = new Map();
  }

  async load(id) {
    this.other = null;
    this.byBlock.clear();
    if (!id) return "";
    const said = await this.transport.described(id);
    if (!sameGrid(said, this.release.said)) {
      return `${said.name} lies on another grid: its map cannot be laid over this one.`;
    }
    const { rows, cols } = said.grid;
    this.other = { id, said, counts: new Counts(await this.transport.components(id), rows, cols) };
    return "";
  }

  async #held(block) {
    if (!this.byBlock.has(block)) {
      const data = this.other.counts.blocks(block);
      const held = { data };
      if (!this.other.said.covert) {
        held.ends = unpackEnds(await this.transport.ends(this.other.id, block), (i) => data.values[i]);
        held.figures = blockFigures(data, held.ends);
      }
      this.byBlock.set(block, held);
    }
    return this.byBlock.get(block);
  }

  // Draw what is compared over the cells; return what the legend says, or null where nothing is.
  async draw(shown, dark, isCurrent) {
    const { compare, part, fade } = this.state.values;
    const swipes = Boolean(this.other) && compare === "swipe";
    this.line.hidden = this.edge.hidden = !swipes;
    if (!this.other || !compare) {
      this.view.showOther(false);
      return null;
    }
    const { block } = shown;
    const there = await this.#held(block);
    if (!isCurrent()) return null;
    if (swipes) {
      this.edge.style.left = `${100 * part}%`;
      const look = { ...this.view.layer.look, fade: fade && Boolean(there.figures) };
      this.view.other.show(there.data, there.figures?.r, there.ends && ((i) => there.ends.low[i] <= 0), look);
      this.view.showOther(true, part);
      return shown;
    }
    this.view.showOther(false);
    const here = this.cells.data(block);
    const values = there.data.values.map((v, i) => v - here.data.values[i]);
    let [r, domain] = [null, 1];
    for (const v of values) domain = Math.max(domain, Math.abs(v));
    const both = here.ends && there.ends;
    if (both) {
      r = values.map((v, i) => {
        const [low, high] = [there.ends.low[i] - here.ends.high[i], there.ends.high[i] - here.ends.low[i]];
        return low <= 0 && high >= 0 ? 3 : (high - low) / 2 / Math.max(Math.abs(v), 1) / 2;
      });
    }
    const colours = this.cells.look(dark, true);
    const look = { ...colours, domain, fade: fade && Boolean(both), marks: false, difference: true, clear: this.view.hasBasemap };
    this.view.layer.show({ ...here.data, values }, r, null, look);
    const confidence = this.release.said.confidence + this.other.said.confidence - 1; // that both hold
    return { block, domain, palette: colours, figures: both ? { empty: 0 } : null, difference: true, confidence };
  }

  swipeTo(part) {
    this.edge.style.left = `${100 * part}%`;
    this.view.showOther(true, part);
  }

  // The rows that the panel adds for a rectangle of cells.
  async rows(query) {
    if (!this.other || !query) return [];
    if (query.kind !== "cells") return [`${this.other.said.name}: differences are shown for rectangles of cells alone.`];
    const found = await this.transport.difference(this.release.id, this.other.id, query.cells);
    const words = (v) => (v > 0 ? `+${number(v)}` : v < 0 ? `−${number(-v)}` : "0");
    const there = this.other.counts.rectangle(...query.cells);
    const ends = isKnown(found) ? ` (${words(Math.floor(found.low))} to ${words(Math.ceil(found.high))}, at least ${sure(found)})` : "";
    const cost = found.together
      ? `One ledger paid for both: together these cost ε = ${found.together.epsilon}.`
      : "If both are about the same people, what they cost adds up.";
    return [`${this.other.said.name}: ${number(there)}`, `Difference: ${words(found.difference)}${ends}`, cost];
  }
}
