// Drawing by keyboard. With the focus on the map: R or P starts a crosshair on a cell, arrows move it,
// Enter sets corners, Escape goes back. Elsewhere no single key does anything.

import { rectangleQuery, shapeQuery } from "./state.js";

const ARROWS = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const LEAP = 5; // cells, with Shift

export class Keyboard {
  constructor(view, overlay, state, mesh, { tell, say, canDraw }) {
    Object.assign(this, { view, overlay, state, mesh, tell, say, canDraw });
    this.mode = "";
    view.element.addEventListener("keydown", (event) => this.#key(event), true);
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest?.("input, textarea, select");
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) {
        event.preventDefault();
        if (!state.undo()) say("Nothing to undo.");
      }
    });
  }

  start(mode) {
    const [width, height] = this.view.size;
    const { rows, cols } = this.mesh;
    const clamp = (v, n) => Math.min(Math.max(Math.floor(v), 0), n - 1);
    const [row, col] = this.view.toGrid(width / 2, height / 2);
    this.at = [clamp(row, rows), clamp(col, cols)];
    this.corner = null;
    this.corners = [];
    this.mode = mode;
    this.before = this.state.values.current;
    this.state.set({ tool: "move" });
    this.tell(mode === "rectangle" ? "Arrow keys move the crosshair. Enter sets the first corner." : "Arrow keys move the crosshair. Enter sets a corner, Enter again on the same place finishes.");
    this.#show();
  }

  stop(sentence = "") {
    this.mode = "";
    this.overlay.cursor = null;
    this.overlay.draft = null;
    this.tell(sentence);
    this.overlay.draw();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const stop = () => {
      event.preventDefault();
      event.stopPropagation();
    };
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.target !== this.view.surface) return;
    if (!this.mode) {
      if (key === "r") (stop(), this.start("rectangle"));
      else if (key === "p" && this.canDraw) (stop(), this.start("polygon"));
      return;
    }
    if (ARROWS[key]) {
      stop();
      const leap = event.shiftKey ? LEAP : 1;
      const { rows, cols } = this.mesh;
      const [dr, dc] = ARROWS[key].map((d) => d * leap);
      this.at = [Math.min(Math.max(this.at[0] + dr, 0), rows - 1), Math.min(Math.max(this.at[1] + dc, 0), cols - 1)];
      this.#show();
    } else if (key === "Enter" || key === " ") {
      stop();
      this.#enter();
    } else if (key === "Escape") {
      stop();
      this.state.set({ current: this.before });
      this.stop("Drawing was given up.");
    }
  }

  #enter() {
    if (this.mode === "polygon") return this.#corner();
    if (!this.corner) {
      this.corner = this.at;
      this.tell("Arrow keys stretch the rectangle. Enter finishes, Escape goes back.");
      this.#show();
      return;
    }
    const query = rectangleQuery(this.#cells());
    this.stop();
    this.state.keep({ current: query }, this.before);
  }

  #corner() {
    const [row, col] = this.at;
    const last = this.corners.at(-1);
    const done = last && last[0] === row && last[1] === col;
    if (!done) {
      this.corners.push([row, col]);
      this.say(`Corner ${this.corners.length}.`);
      this.#show();
      return;
    }
    if (this.corners.length < 3) {
      this.tell("A polygon has three corners or more.");
      return;
    }
    const ring = this.corners.map(([r, c]) => this.mesh.toDegrees(r + 0.5, c + 0.5));
    this.stop();
    this.state.keep({ current: shapeQuery([[ring]], { how: "polygon" }) }, this.before);
  }

  #cells() {
    const [[ra, ca], [rb, cb]] = [this.corner ?? this.at, this.at];
    return [Math.min(ra, rb), Math.max(ra, rb), Math.min(ca, cb), Math.max(ca, cb)];
  }

  #show() {
    const [row, col] = this.at;
    this.overlay.cursor = { cells: [row, row, col, col] };
    if (this.mode === "polygon") {
      this.overlay.draft = [...this.corners, this.at].map(([r, c]) => this.view.toPixel(r + 0.5, c + 0.5));
      this.overlay.draw();
    } else if (this.corner) this.state.set({ current: rectangleQuery(this.#cells()) });
    this.overlay.draw();
    this.#follow();
    if (!this.corner) this.say(`Row ${row}, column ${col}.`);
  }

  // Keep the crosshair on the screen.
  #follow() {
    const [x, y] = this.view.toPixel(this.at[0] + 0.5, this.at[1] + 0.5);
    const [width, height] = this.view.size;
    const over = (v, n) => (v < 60 ? v - 60 : v > n - 60 ? v - n + 60 : 0);
    const by = [over(x, width), over(y, height)];
    if (by[0] || by[1]) this.view.map?.panBy(by, { animate: false });
  }
}
