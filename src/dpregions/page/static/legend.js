// The legend, and how the map is to look: detail by the noise, fade, plain.

import { colourOf, css, faded } from "./colours.js";
import { element, length, number, sure } from "./words.js";

export class Legend {
  constructor(host, release, state) {
    Object.assign(this, { host, release, state });
    this.title = element("p", { className: "legend-title" });
    this.canvas = element("canvas", { width: 440, height: 60, className: "wedge", role: "img" });
    this.scale = element("div", { className: "scale" });
    this.words = element("div", { className: "fade-words", ariaHidden: "true" }, element("span", {}, "clear"), element("span", {}, "rough"));
    this.note = element("p", { className: "note" });
    const { said } = release;
    const group = element("fieldset", { className: "details" }, element("legend", {}, "Detail"));
    for (const block of said.blocks ?? []) {
      const id = `detail-${block}`;
      const input = element("input", { type: "radio", name: "detail", id, value: block, onchange: () => state.set({ detail: block }) });
      group.append(input, element("label", { htmlFor: id }, length(block * said.grid.cell, said.length_unit)));
    }
    this.fade = element("input", { type: "checkbox", id: "fade", onchange: () => state.set({ fade: this.fade.checked }) });
    this.fadeLabel = element("label", { className: "check", htmlFor: "fade" }, this.fade, "fade by noise");
    const wedge = element("div", { className: "wedge-box" }, this.words, element("div", { className: "wedge-side" }, this.canvas, this.scale));
    const choices = element("div", { className: "legend-choices" }, this.note);
    if (said.blocks?.length > 1) choices.append(group);
    if (!said.covert) choices.append(this.fadeLabel);
    host.append(element("div", { className: "legend-colours" }, this.title, wedge), choices);
    this.group = group;
  }

  // `shown` has the block, the domain, the palette, and what share of blocks may be empty.
  show(shown, values) {
    const { said } = this.release;
    const { block, domain, palette, figures, difference } = shown;
    const side = said.grid ? length(block * said.grid.cell, said.length_unit) : "";
    const each = said.grid ? `${block === 1 ? "cell" : "block"} of ${side}` : "cell";
    this.title.textContent = difference ? `Difference for each ${each}` : `Regions touching each ${each}`;
    this.fade.checked = values.fade;
    this.fadeLabel.hidden = !figures;
    const fades = values.fade && Boolean(figures);
    this.words.hidden = !fades;
    this.#draw(palette, fades, difference);
    const marks = difference ? [-domain, 0, domain] : [0, domain / 4, domain];
    this.scale.replaceChildren(...marks.map((v) => element("span", {}, v < 0 ? `−${number(-v)}` : number(v))));
    this.canvas.setAttribute("aria-label", `Colours from ${number(marks[0])} to ${number(domain)}${fades ? ", fading into the paper where noise is large beside the count" : ""}`);
    this.note.textContent = !figures
      ? said.covert ? "This release has counts only: nothing is known of its noise." : "Intervals are on their way."
      : difference ? `Faded where the difference may be 0. Elsewhere there is one, at least ${sure(shown)}.` : figures.empty ? `${said.grid ? "× may" : "May"} be empty: ${Math.max(1, Math.round(100 * figures.empty))} % of ${block === 1 ? "cells" : "blocks"}` : `No ${block === 1 ? "cell" : "block"} may be empty.`;
    for (const input of this.group.querySelectorAll("input")) input.checked = Number(input.value) === block;
  }

  #draw(palette, fades, difference) {
    const context = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    const steps = 56;
    const levels = fades ? [0, 0.5, 1, 2] : [0];
    levels.forEach((r, k) => {
      for (let i = 0; i < steps; i++) {
        const part = i / (steps - 1);
        const t = difference ? 2 * part - 1 : part; // a value's place is its root, as its colour's
        context.fillStyle = css(colourOf(palette, t, faded(r), difference));
        const top = (k * height) / levels.length;
        context.fillRect((i * width) / steps, top, width / steps + 1, height / levels.length + 1);
      }
    });
  }
}
