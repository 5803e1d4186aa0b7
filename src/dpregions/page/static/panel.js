// The panel beside the map: the answer to the query at hand, boxes that ask without a map, and the
// list of saved queries.

import { rectangleQuery } from "./state.js";
import { element, isKnown, length, number, range, sizeWords, sure, WHOSE } from "./words.js";

export class Panel {
  constructor(root, release, answers, state, { zoomTo, download }) {
    Object.assign(this, { root, release, answers, state, zoomTo, download });
    this.#makeAnswer();
    if (release.counts) this.#makeBoxes();
    else root.querySelector("#boxes").remove();
    this.#makeSaved();
  }

  #makeAnswer() {
    const host = this.root.querySelector("#answer");
    this.parts = {
      title: element("h2", { id: "answer-title" }, "Query"),
      empty: element("p", { className: "empty" }),
      count: element("p", { className: "count" }),
      whose: element("p", { className: "whose" }),
      bar: element("div", { className: "bar", ariaHidden: "true" }),
      ends: element("p", { className: "ends" }),
      size: element("p", { className: "size" }),
      notes: element("ul", { className: "notes" }),
      name: element("input", { type: "text", id: "query-name", maxLength: 60, placeholder: "Name it", autocomplete: "off" }),
    };
    const { parts } = this;
    const [track, span, mark] = ["track", "span", "mark"].map((name) => element("span", { className: name }));
    parts.bar.append(track, span, mark);
    Object.assign(parts, { span, mark });
    parts.form = element(
      "form",
      { className: "keep", onsubmit: (event) => (event.preventDefault(), this.save()) },
      element("label", { className: "unseen", htmlFor: "query-name" }, "Name of the query"),
      parts.name,
      element("button", { type: "submit", className: "main" }, "Save"),
      (parts.copy = element("button", { type: "button", onclick: () => this.copy() }, "Copy numbers")),
    );
    host.append(parts.title, parts.empty, parts.count, parts.whose, parts.bar, parts.ends, parts.size, parts.notes, parts.form);
  }

  // The answer as it stands; while an interval is on its way the old one is gone, never beside
  // another count.
  show(query, answer) {
    const { parts, release } = this;
    const { said } = release;
    const none = !query;
    parts.empty.hidden = !none;
    for (const name of ["count", "whose", "bar", "ends", "size", "notes", "form"]) parts[name].hidden = none;
    this.root.classList.toggle("asking", !none);
    if (none) {
      parts.empty.textContent = release.counts
        ? "Draw a rectangle on the map, or give its rows and columns below, to count the regions in it."
        : "Choose a cell on the map, or draw an area, to count the regions in it.";
      return;
    }
    parts.name.value = document.activeElement === parts.name ? parts.name.value : query.name;
    const about = answer.exact || answer.outside ? "" : "≈ ";
    parts.count.textContent = answer.count === undefined ? "…" : `${about}${number(answer.count)}`;
    parts.whose.textContent = `${WHOSE[said.unit]} touch this area`;
    const known = isKnown(answer);
    parts.bar.hidden = !known;
    const waiting = answer.low === undefined;
    parts.ends.classList.toggle("waiting", waiting);
    parts.ends.replaceChildren();
    if (known) {
      parts.ends.append(element("span", {}, number(answer.low)), element("span", { className: "sure" }, sure(said)), element("span", {}, number(answer.high)));
      this.#drawBar(answer);
    } else parts.ends.append(element("span", { className: "quiet" }, waiting ? "interval on its way" : ""));
    parts.size.textContent = this.#sizeOf(query);
    parts.notes.replaceChildren(...this.#notesOf(query, answer).map((text) => element("li", {}, text)));
  }

  #drawBar({ count, low, high }) {
    const room = Math.max((high - low) * 0.22, 1);
    const [from, to] = [Math.max(Math.min(low, count) - room, 0), Math.max(high, count) + room];
    const at = (v) => `${(100 * (v - from)) / (to - from)}%`;
    const { span, mark } = this.parts;
    span.style.left = at(low);
    span.style.width = `${(100 * (high - low)) / (to - from)}%`;
    mark.style.left = at(count);
  }

  #sizeOf(query) {
    const { said } = this.release;
    if (query.kind === "cells") {
      const [r0, r1, c0, c1] = query.cells;
      const many = (a, b, one) => (a === b ? `${one} ${a}` : `${one}s ${a} to ${b}`);
      return `${sizeWords(query.cells, said.grid, said.length_unit)} · ${many(r0, r1, "row")}, ${many(c0, c1, "column")}`;
    }
    if (query.kind === "label") return `Cell ${query.label}`;
    if (!said.grid) return "";
    let area = 0;
    for (const rings of this.answers.rings(query)) {
      rings.forEach((ring, k) => {
        let twice = 0;
        ring.forEach(([r, c], i) => {
          const [r2, c2] = ring[(i + 1) % ring.length];
          twice += c * r2 - c2 * r;
        });
        area += ((k ? -1 : 1) * Math.abs(twice)) / 2;
      });
    }
    const { cell } = said.grid;
    const square = area * cell * cell;
    const words = said.length_unit === "m" && square >= 1e5 ? `${Number((square / 1e6).toPrecision(3))} km²` : `${length(square, said.length_unit)}²`;
    const how = query.how ?? "area";
    return `${words} · ${how}`;
  }

  #notesOf(query, answer) {
    const notes = [];
    if (answer.outside) return ["Wholly outside the area: nobody is counted there."];
    if (query.kind === "cells") notes.push("Exact shape: a rectangle of cells. Each region counts once.");
    else if (answer.asDrawn) notes.push("Counted as drawn. Each region counts once.");
    else if (answer.touchedOnly && !answer.exact) notes.push("Approximate: counted on the cells that the area touches, which form no rectangle. A region in two pieces of it counts twice.");
    else if (answer.touchedOnly) notes.push("Counted on the rectangle of cells that the area touches.");
    if (query.cut || answer.cut) notes.push("Only the part inside the area is counted.");
    if (isKnown(answer) && answer.low === 0 && answer.count > 0) notes.push("It may be empty: the interval reaches 0.");
    if (answer.why) notes.push(answer.why);
    return notes;
  }

  #makeBoxes() {
    const { rows, cols } = this.release.said.grid;
    const box = (key, words, most) => {
      const input = element("input", { type: "number", id: `box-${key}`, min: 0, max: most, step: 1, inputMode: "numeric", onchange: () => this.#boxed() });
      this.boxes[key] = input;
      return element("label", { htmlFor: input.id }, element("span", {}, words), input);
    };
    this.boxes = {};
    const host = this.root.querySelector("#boxes");
    this.bounds = element("p", { className: "bounds" });
    host.append(
      element("h2", { id: "boxes-title" }, "Rows and columns"),
      element("p", { className: "quiet" }, `Rows 0 to ${rows - 1} from the lower side, columns 0 to ${cols - 1} from the left.`),
      element(
        "div",
        { className: "grid-boxes" },
        ...[box("r0", "First row", rows - 1), box("r1", "Last row", rows - 1), box("c0", "First column", cols - 1), box("c1", "Last column", cols - 1)],
      ),
      this.bounds,
    );
  }

  #boxed() {
    const { rows, cols } = this.release.said.grid;
    const { r0, r1, c0, c1 } = this.boxes;
    if ([r0, r1, c0, c1].some((input) => input.value === "")) return;
    const clamp = (input, n) => Math.min(Math.max(Math.round(Number(input.value)) || 0, 0), n - 1);
    const [a, b, c, d] = [clamp(r0, rows), clamp(r1, rows), clamp(c0, cols), clamp(c1, cols)];
    const cells = [Math.min(a, b), Math.max(a, b), Math.min(c, d), Math.max(c, d)];
    this.state.keep({ current: rectangleQuery(cells) });
    this.zoomTo(null);
  }

  fillBoxes(query) {
    if (!this.boxes) return;
    const cells = query?.kind === "cells" ? query.cells : [];
    ["r0", "r1", "c0", "c1"].forEach((key, i) => {
      if (document.activeElement !== this.boxes[key]) this.boxes[key].value = cells[i] ?? "";
    });
    const { grid, length_unit: unit, crs } = this.release.said;
    if (!cells.length) {
      this.bounds.textContent = "";
      return;
    }
    const [r0, r1, c0, c1] = cells;
    const at = (low, k) => Number((low + k * grid.cell).toPrecision(12)).toLocaleString("en-US", { maximumFractionDigits: 3 });
    this.bounds.textContent = `x ${at(grid.xmin, c0)} to ${at(grid.xmin, c1 + 1)}, y ${at(grid.ymin, r0)} to ${at(grid.ymin, r1 + 1)} ${unit}${crs ? ` (${crs})` : ""}`;
  }

  #makeSaved() {
    const host = this.root.querySelector("#saved");
    this.list = element("ul", { className: "saved-list" });
    this.savedTitle = element("h2", { id: "saved-title" }, "Saved");
    this.savedEmpty = element("p", { className: "quiet" }, "Saved queries are listed here. Drop a GeoJSON or CSV file on the page to ask about all its areas.");
    this.file = element("input", { type: "file", id: "areas-file", accept: ".geojson,.json,.csv", className: "unseen", onchange: () => this.onFile?.(this.file.files[0]) });
    this.savedActions = element(
      "div",
      { className: "row" },
      element("label", { className: "button", htmlFor: "areas-file", id: "areas-label" }, "Add areas"),
      this.file,
      (this.csv = element("button", { type: "button", onclick: () => this.download("csv") }, "CSV")),
      (this.geojson = element("button", { type: "button", onclick: () => this.download("geojson") }, "GeoJSON")),
      (this.clear = element("button", { type: "button", onclick: () => this.state.keep({ saved: [] }) }, "Clear")),
    );
    host.append(this.savedTitle, this.savedEmpty, this.list, this.savedActions);
  }

  showSaved({ saved, current }) {
    this.savedTitle.textContent = saved.length ? `Saved (${saved.length})` : "Saved";
    this.savedEmpty.hidden = saved.length > 0;
    for (const button of [this.csv, this.geojson, this.clear]) button.hidden = !saved.length;
    const sorted = saved.length > 12 ? [...saved].sort((a, b) => (this.answers.now(b).count ?? 0) - (this.answers.now(a).count ?? 0)) : saved;
    this.list.replaceChildren(...sorted.map((query, i) => this.#item(query, i, current)));
  }

  #item(query, i, current) {
    const answer = this.answers.now(query);
    const count = answer.count === undefined ? "…" : `${answer.exact ? "" : "≈ "}${number(answer.count)}`;
    const name = query.name || `Query ${i + 1}`;
    return element(
      "li",
      { className: query.id === current?.id ? "chosen" : "" },
      element(
        "button",
        { type: "button", className: "pick", onclick: () => this.#pick(query) },
        element("span", { className: "name" }, name),
        element("span", { className: "number" }, count),
        element("span", { className: "between" }, isKnown(answer) ? range(answer) : answer.low === undefined ? "…" : ""),
      ),
      element("button", { type: "button", className: "drop", ariaLabel: `Remove ${name}`, onclick: () => this.state.keep({ saved: this.state.values.saved.filter((q) => q !== query) }) }, "×"),
    );
  }

  #pick(query) {
    this.state.keep({ current: query });
    this.zoomTo(query);
  }

  save() {
    const { current, saved } = this.state.values;
    if (!current) return;
    const name = this.parts.name.value.trim() || current.name || `Query ${saved.length + 1}`;
    const query = { ...current, name };
    const at = saved.findIndex((q) => q.id === query.id);
    const kept = at < 0 ? [...saved, query] : saved.map((q, i) => (i === at ? query : q));
    this.state.keep({ saved: kept, current: query });
  }

  async copy() {
    const { current } = this.state.values;
    const answer = this.answers.now(current);
    const { said } = this.release;
    const words = [`${answer.exact ? "" : "about "}${number(answer.count)}`, isKnown(answer) ? `(${range(answer)}, ${sure(said)})` : "", WHOSE[said.unit]];
    const text = `${words.filter(Boolean).join(" ")} · ${said.name}, epsilon ${said.epsilon}${said.private ? "" : ", NOT PRIVATE"}`;
    const done = await copyText(text);
    this.parts.copy.textContent = done ? "Copied" : "Not allowed";
    setTimeout(() => (this.parts.copy.textContent = "Copy numbers"), 1500);
  }
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page from a file or in a frame may not: the old way, by a selection.
    const area = element("textarea", { value: text, className: "unseen", readOnly: true });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
