// What lies over the cells: the grid's frame, a graticule, queries as asked (dashed) and as answered
// (solid), names of saved ones. One SVG, drawn anew whenever the map moves.

const SVG = "http://www.w3.org/2000/svg";

export function shape(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const path = (rings) => rings.map((ring) => `M${ring.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}Z`).join("");

export class Overlay {
  constructor(view, release, answers) {
    Object.assign(this, { view, release, answers });
    this.svg = shape("svg", { class: "overlay", "aria-hidden": "true" });
    this.parts = {};
    for (const name of ["graticule", "frame", "areas", "saved", "touched", "asked", "answered", "cursor", "labels"]) {
      this.parts[name] = shape("g", { class: name });
      this.svg.append(this.parts[name]);
    }
    view.element.append(this.svg);
    this.cursor = null; // the crosshair of the keyboard: { cells } or { place }
    this.draft = null; // { rings } of a drawing under way
    this.areas = [];
    this.values = null;
    view.onMove(() => this.draw());
  }

  lines(r0, r1, c0, c1) {
    return this.release.mesh.outline(r0, r1, c0, c1).map(([r, c]) => this.view.toPixel(r, c));
  }

  cellsPath([r0, r1, c0, c1]) {
    return path([this.lines(r0, r1 + 1, c0, c1 + 1)]);
  }

  partsPath(query) {
    return path(query.parts.flat().map((ring) => ring.map(([lon, lat]) => this.view.pixelOf(lon, lat))));
  }

  queryPath(query) {
    if (query.kind === "cells") return this.cellsPath(query.cells);
    if (query.kind === "shape") return this.partsPath(query);
    const found = this.release.byLabel?.get(String(query.label));
    if (!found) return "";
    const { type, coordinates } = found.geometry;
    const polygons = type === "Polygon" ? [coordinates] : coordinates;
    return path(polygons.flat().map((ring) => ring.map(([lon, lat]) => this.view.pixelOf(lon, lat))));
  }

  show(values) {
    this.values = values;
    this.draw();
  }

  draw() {
    const { parts, view, release } = this;
    const [width, height] = view.size;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const { rows, cols } = release.mesh;
    if (release.counts) parts.frame.replaceChildren(shape("path", { d: path([this.lines(0, rows, 0, cols)]) }));
    this.#graticule(width, height);
    parts.areas.replaceChildren(...this.areas.map((query) => shape("path", { d: this.partsPath(query) })));
    const { current, saved } = this.values ?? { current: null, saved: [] };
    parts.saved.replaceChildren(...saved.filter((q) => q.id !== current?.id).map((q) => shape("path", { d: this.queryPath(q) })));
    parts.labels.replaceChildren(...saved.filter((q) => q.name).map((q) => this.#label(q)));
    const [touched, asked, answered] = [[], [], []];
    if (this.draft) asked.push(shape("path", { d: path([this.draft]) }));
    if (current?.kind === "cells") {
      if (current.dragged) asked.push(shape("path", { d: path([this.lines(...current.dragged)]) }));
      answered.push(shape("path", { d: this.cellsPath(current.cells) }));
    } else if (current) {
      const answer = this.answers.now(current);
      const drawn = shape("path", { d: this.queryPath(current) });
      (answer.touchedOnly ? asked : answered).push(drawn);
      if (answer.touchedOnly && answer.mask) touched.push(shape("path", { d: this.#cellsOf(answer.mask) }));
    }
    parts.touched.replaceChildren(...touched);
    parts.asked.replaceChildren(...asked);
    parts.answered.replaceChildren(...answered);
    this.#drawCursor();
    this.onDraw?.();
  }

  #label(query) {
    const [x, y] = this.corner(query) ?? [-99, -99];
    return shape("text", { x: x.toFixed(1), y: (y - 5).toFixed(1) }, query.name);
  }

  // Its upper left on the screen, where its name goes.
  corner(query) {
    const places = this.outlineOf(query);
    if (!places.length) return null;
    const top = Math.min(...places.map((p) => p[1]));
    return [Math.min(...places.map((p) => p[0])), top];
  }

  outlineOf(query) {
    if (query.kind === "cells") {
      const [r0, r1, c0, c1] = query.cells;
      return this.lines(r0, r1 + 1, c0, c1 + 1);
    }
    if (query.kind === "shape") return query.parts.flat(2).map(([lon, lat]) => this.view.pixelOf(lon, lat));
    const found = this.release.byLabel?.get(String(query.label));
    return found ? found.geometry.coordinates.flat(found.geometry.type === "Polygon" ? 1 : 2).map(([a, b]) => this.view.pixelOf(a, b)) : [];
  }

  // Marked cells, a strip for each run of a row.
  #cellsOf(mask) {
    const { rows, cols } = this.release.mesh;
    const rings = [];
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < cols; c++) {
        if (!mask[r * cols + c]) continue;
        let end = c;
        while (end + 1 < cols && mask[r * cols + end + 1]) end++;
        rings.push([[r, c], [r, end + 1], [r + 1, end + 1], [r + 1, c]].map(([a, b]) => this.view.toPixel(a, b)));
        c = end;
      }
    }
    return path(rings);
  }

  #drawCursor() {
    const { cursor } = this;
    const made = [];
    if (cursor?.cells) {
      made.push(shape("path", { class: "cell", d: this.cellsPath(cursor.cells) }));
      const [r0, r1, c0, c1] = cursor.cells;
      const [x, y] = this.view.toPixel((r0 + r1 + 1) / 2, (c0 + c1 + 1) / 2);
      made.push(shape("path", { d: `M${x - 16} ${y}H${x - 5}M${x + 5} ${y}H${x + 16}M${x} ${y - 16}V${y - 5}M${x} ${y + 5}V${y + 16}` }));
    }
    this.parts.cursor.replaceChildren(...made);
  }

  // Meridians and parallels; of a plane without a place on Earth, its own axes.
  #graticule(width, height) {
    const { view, release } = this;
    const made = [];
    const label = (x, y, text, anchor) => made.push(shape("text", { x, y, "text-anchor": anchor }, text));
    const grid = release.said.grid;
    const plain = view.plain;
    let [west, south, east, north] = view.bounds();
    const lonlat = (x, y) => view.pixelOf(x, y);
    let at = lonlat;
    if (plain) {
      const [xmin, ymin, xmax, ymax] = release.said.bounds;
      const { rows, cols } = release.mesh;
      const there = (px, py) => {
        const [row, col] = view.toGrid(px, py);
        return [xmin + (col / cols) * (xmax - xmin), ymin + (row / rows) * (ymax - ymin)];
      };
      [[west, south], [east, north]] = [there(0, height), there(width, 0)];
      at = (x, y) => view.toPixel(((y - ymin) / (ymax - ymin)) * rows, ((x - xmin) / (xmax - xmin)) * cols);
    }
    const wide = width > 640 ? 6 : 3;
    const [stepX, stepY] = [niceStep((east - west) / wide), niceStep((north - south) / Math.max(2, (wide * height) / width))];
    const unit = plain ? ` ${release.said.length_unit}` : "";
    const words = (v, step, [plus, minus]) => {
      const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      return plain ? `${v.toFixed(decimals)}${unit}` : `${Math.abs(v).toFixed(decimals)}° ${v < 0 ? minus : plus}`;
    };
    for (let v = Math.ceil(west / stepX) * stepX; v <= east; v += stepX) {
      const [a, b] = [at(v, south), at(v, north)];
      made.push(shape("path", { d: `M${a[0].toFixed(1)} ${a[1].toFixed(1)}L${b[0].toFixed(1)} ${b[1].toFixed(1)}` }));
      if (b[0] > 70 && b[0] < width - 60) label(b[0].toFixed(1), 14, words(v, stepX, "EW"), "middle");
    }
    for (let v = Math.ceil(south / stepY) * stepY; v <= north; v += stepY) {
      const [a, b] = [at(west, v), at(east, v)];
      made.push(shape("path", { d: `M${a[0].toFixed(1)} ${a[1].toFixed(1)}L${b[0].toFixed(1)} ${b[1].toFixed(1)}` }));
      if (b[1] > 130 && b[1] < height - 20) label(width - 6, (b[1] - 4).toFixed(1), words(v, stepY, "NS"), "end");
    }
    if (!grid && plain) made.splice(0);
    this.parts.graticule.replaceChildren(...made);
  }
}

export function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((k) => k * power).find((step) => step >= least) ?? 10 * power;
}
