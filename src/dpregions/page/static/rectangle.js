// The rectangle tool. It works in the grid's rows and columns: on a web map cells are tilted, and half
// of all upright rectangles are no rectangles of cells. Drag, or tap two corners; then handles; by
// keyboard, a crosshair that goes from cell to cell.

import { cellsTouched } from "./grid_math.js";
import { shape } from "./overlay.js";
import { rectangleQuery } from "./state.js";

const HANDLES = { sw: [0, 0], s: [0, 0.5], se: [0, 1], e: [0.5, 1], ne: [1, 1], n: [1, 0.5], nw: [1, 0], w: [0.5, 0] };
const STILL = 5; // pixels that a press may move and still be a tap

export class Rectangle {
  constructor(view, overlay, state, mesh, tell) {
    Object.assign(this, { view, overlay, state, mesh, tell });
    this.first = null; // the corner that was tapped
    this.handles = {};
    const host = shape("g", { class: "handles" });
    overlay.svg.append(host);
    for (const name of Object.keys(HANDLES)) {
      const handle = shape("g", { class: `handle ${name}`, "data-handle": name });
      handle.append(shape("circle", { r: 22, class: "target" }), shape("circle", { r: 6.5, class: "dot" }));
      handle.addEventListener("pointerdown", (event) => this.#pull(event, name));
      host.append(handle);
      this.handles[name] = handle;
    }
    overlay.onDraw = () => this.#place();
    view.element.addEventListener("pointerdown", (event) => this.#press(event), true);
    view.element.addEventListener("pointermove", (event) => this.#hover(event), true);
    this.#place();
  }

  get active() {
    return this.state.values.tool === "rectangle";
  }

  at(event) {
    const box = this.view.element.getBoundingClientRect();
    return this.view.toGrid(event.clientX - box.left, event.clientY - box.top);
  }

  // Ask about the cells that a rectangle of lines touches.
  ask(r0, r1, c0, c1, keep) {
    const { rows, cols } = this.mesh;
    const dragged = [Math.min(r0, r1), Math.max(r0, r1), Math.min(c0, c1), Math.max(c0, c1)];
    const cells = cellsTouched(...dragged, rows, cols);
    if (!cells) {
      this.tell("That lies wholly outside the area: nobody is counted there.");
      return;
    }
    const cut = dragged[0] < 0 || dragged[1] > rows || dragged[2] < 0 || dragged[3] > cols;
    const more = { cut, ...(this.editing ? { id: this.editing.id, name: this.editing.name } : {}) };
    const query = rectangleQuery(cells, dragged, more);
    if (keep) this.state.keep({ current: query }, this.before ?? null);
    else this.state.set({ current: query });
  }

  #press(event) {
    if (!this.active || event.button !== 0 || !this.#onMap(event)) return;
    this.editing = null;
    const start = this.at(event);
    this.pressed = { start, x: event.clientX, y: event.clientY, drag: event.pointerType !== "touch" };
    this.before = this.state.values.current;
    const move = (moved) => {
      if (!this.pressed.drag || Math.hypot(moved.clientX - this.pressed.x, moved.clientY - this.pressed.y) < STILL) return;
      this.pressed.moved = true;
      this.#stretch(start, this.at(moved), moved.shiftKey, false);
    };
    const up = (ended) => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", up);
      window.removeEventListener("pointercancel", up);
      const { x, y, moved } = this.pressed;
      const still = Math.hypot(ended.clientX - x, ended.clientY - y) < 3 * STILL;
      this.pressed = null;
      if (moved) this.#finish(start, this.at(ended), ended.shiftKey);
      else if (still && ended.type === "pointerup") this.#tap(this.at(ended));
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", up);
    window.addEventListener("pointercancel", up);
  }

  #onMap(event) {
    return event.target === this.view.surface || event.target === this.view.element;
  }

  #stretch(a, b, fromMiddle, keep) {
    const [r, c] = fromMiddle ? [2 * a[0] - b[0], 2 * a[1] - b[1]] : a;
    this.ask(r, b[0], c, b[1], keep);
  }

  #finish(a, b, fromMiddle) {
    this.first = null;
    this.state.set({ tool: "move" });
    this.#stretch(a, b, fromMiddle, true);
  }

  #tap(place) {
    if (!this.first) {
      this.first = place;
      this.ask(place[0], place[0], place[1], place[1], false);
      this.tell("Now the opposite corner.");
      return;
    }
    this.#finish(this.first, place, false);
  }

  #hover(event) {
    if (this.active && this.first && !this.pressed && event.pointerType !== "touch") {
      const [r, c] = this.at(event);
      this.ask(this.first[0], r, this.first[1], c, false);
    }
  }

  cancel() {
    const begun = this.first;
    this.first = null;
    if (begun) this.state.set({ current: this.before ?? null });
  }

  // A corner or a side is pulled to another line.
  #pull(event, name) {
    const { current } = this.state.values;
    if (current?.kind !== "cells") return;
    event.preventDefault();
    event.stopPropagation();
    this.editing = this.before = current;
    const [r0, r1, c0, c1] = [current.cells[0], current.cells[1] + 1, current.cells[2], current.cells[3] + 1];
    const [v, h] = HANDLES[name];
    const handle = this.handles[name];
    handle.setPointerCapture(event.pointerId);
    let last = null;
    const reach = (moved) => {
      const [row, col] = this.at(moved);
      const [up, right] = [v === 1 ? row : r1, h === 1 ? col : c1];
      const [down, left] = [v === 0 ? row : r0, h === 0 ? col : c0];
      return [down, up, left, right];
    };
    const move = (moved) => {
      last = reach(moved);
      this.ask(...last, false);
    };
    const up = () => {
      handle.removeEventListener("pointermove", move);
      if (last) this.ask(...last, true);
      this.editing = null;
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("lostpointercapture", up, { once: true });
  }

  #place() {
    const { current, tool } = this.state.values;
    const shown = current?.kind === "cells" && tool === "move" && !this.pressed;
    for (const [name, handle] of Object.entries(this.handles)) {
      handle.setAttribute("visibility", shown ? "visible" : "hidden");
      if (!shown) continue;
      const [r0, r1, c0, c1] = current.cells;
      const [v, h] = HANDLES[name];
      const [x, y] = this.view.toPixel(r0 + v * (r1 + 1 - r0), c0 + h * (c1 + 1 - c0));
      handle.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    }
  }
}
