// The tools over the map, as buttons with words.

import { element } from "./words.js";
import { shape } from "./overlay.js";

const ICONS = {
  move: "M8 1v14M1 8h14M8 1 6 3.4M8 1l2 2.4M8 15l-2-2.4M8 15l2-2.4M1 8l2.4-2M1 8l2.4 2M15 8l-2.4-2M15 8l-2.4 2",
  rectangle: "M2.5 3.5h11v9h-11z",
  polygon: "M3 6 8 2l5.5 4L12 13.5H4.5z",
  freehand: "M3 11c-2-4 2-9 6-8s6 5 3 8-7 3-9 0z",
  circle: "M8 2a6 6 0 1 0 .01 0z",
  areas: "M8 11V2M4.5 5.5 8 2l3.5 3.5M2.5 10.5v3h11v-3",
  upright: "M8 14V3M4.5 6.5 8 3l3.5 3.5",
  swipe: "M8 1.5v13M5.5 5 2.5 8l3 3M10.5 5l3 3-3 3",
  difference: "M8 2.5v6M5 5.5h6M5 12.5h6",
  whole: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4",
};

const icon = (name) => {
  const svg = shape("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" });
  svg.append(shape("path", { d: ICONS[name] }));
  return svg;
};

export class Toolbar {
  constructor(host, state, { rectangle, drawing, mesh, view, addAreas, whole }) {
    this.buttons = {};
    const tool = (name, words, title) => {
      const button = element("button", { type: "button", title, ariaPressed: "false", onclick: () => state.set({ tool: state.values.tool === name ? "move" : name }) }, icon(name), element("span", {}, words));
      this.buttons[name] = button;
      return button;
    };
    const made = [tool("move", "Move", "Move the map")];
    if (rectangle) made.push(tool("rectangle", "Rectangle", "A rectangle of cells (R on the map)"));
    if (drawing) made.push(tool("polygon", "Polygon", "A polygon, counted as drawn (P on the map)"), tool("freehand", "Freehand", "Any outline, counted as drawn"), tool("circle", "Circle", "A circle, counted as drawn"));
    made.push(element("button", { type: "button", title: "Areas from a GeoJSON or CSV file", onclick: addAreas }, icon("areas"), element("span", {}, "Areas")));
    if (view.map) {
      const lean = mesh.lean();
      if (!view.plain && Math.abs(lean) > 0.2) {
        this.upright = element("button", { type: "button", title: "Turn the map so that cells are upright", ariaPressed: "false", onclick: () => {
          const on = this.upright.getAttribute("aria-pressed") !== "true";
          this.upright.setAttribute("aria-pressed", String(on));
          view.turn(on ? lean : 0);
        } }, icon("upright"), element("span", {}, "Grid up"));
        made.push(this.upright);
      }
      made.push(element("button", { type: "button", title: "Show the whole area", onclick: whole }, icon("whole"), element("span", {}, "Whole area")));
    }
    this.mode = element("button", { type: "button", hidden: true, onclick: () => state.set({ compare: state.values.compare === "swipe" ? "difference" : "swipe" }) }, "");
    host.append(...made, this.mode);
    state.on("tool", ({ tool: chosen }) => this.#show(chosen));
    state.on("compare", ({ compare }) => this.#name(compare));
    this.#show(state.values.tool);
    this.#roving(host);
  }

  #name(compare) {
    const other = compare === "difference" ? "swipe" : "difference";
    this.mode.title = other === "swipe" ? "Swipe between the two releases" : "Show how the two releases differ";
    this.mode.replaceChildren(icon(other), element("span", {}, other === "swipe" ? "Swipe" : "Differ- ence"));
  }

  #show(chosen) {
    for (const [name, button] of Object.entries(this.buttons)) button.setAttribute("aria-pressed", String(name === chosen));
  }

  comparing(on, compare) {
    this.mode.hidden = !on;
    this.#name(compare);
  }

  // Arrow keys go from tool to tool; Tab enters and leaves the bar once.
  #roving(host) {
    const all = () => [...host.querySelectorAll("button:not([hidden])")];
    const rove = (chosen) => all().forEach((button) => (button.tabIndex = button === chosen ? 0 : -1));
    rove(all()[0]);
    host.addEventListener("focusin", (event) => rove(event.target.closest("button")));
    host.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const buttons = all();
      buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length].focus();
    });
  }
}
