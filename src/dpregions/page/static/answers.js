// From a query to its answer: the count at once, from what the page holds, and the interval from
// whoever knows it. A count is never shown beside the interval of another query.

import { Trouble } from "./transport.js";
import { isInside, maskRange, polygonCells } from "./grid_math.js";

const PATIENCE = 60; // milliseconds without a change before the server is asked

export class Answers {
  constructor(release, transport, tell) {
    this.release = release; // { id, said, counts, mesh, bodies, rectangles, ends: block -> ends }
    this.transport = transport;
    this.tell = tell; // told of troubles, and of null when they are over
    this.known = new Map();
    this.timer = 0;
  }

  // Rings in rows and columns.
  rings(query) {
    const { mesh } = this.release;
    return query.parts.map((rings) => rings.map((ring) => ring.map(([lon, lat]) => mesh.fromDegrees(lon, lat))));
  }

  // What is known at once. `low` is undefined while an interval is on its way, null where there is none.
  now(query) {
    const key = keyOf(query);
    if (this.known.has(key)) return this.known.get(key);
    const found = query.kind === "cells" ? this.#rectangle(query.cells) : query.kind === "label" ? this.#label(query.label) : this.#shape(query);
    return found;
  }

  #unanswered() {
    const { said } = this.release;
    return said.covert || !this.transport.live ? null : undefined;
  }

  #rectangle(cells) {
    const { said, counts } = this.release;
    const answer = { count: counts.rectangle(...cells), exact: true, cells };
    if (said.covert) return { ...answer, low: null, high: null, why: "This release has counts only." };
    const ends = this.#endsHeld(cells);
    if (ends) return { ...answer, low: ends[0], high: ends[1] };
    const low = this.#unanswered();
    return { ...answer, low, high: low, why: low === null ? "This file has intervals of blocks of cells only. For this one: dpregions serve" : "" };
  }

  // Of every rectangle where the file has them all, else of one that is a block of some detail.
  #endsHeld(cells) {
    const { rectangles, ends, counts } = this.release;
    if (rectangles) return rectangles.of(...cells);
    const [r0, r1, c0, c1] = cells;
    for (const [block, held] of ends) {
      const [r, c] = [r0 / block, c0 / block];
      const whole = Math.min(r0 + block, counts.rows) - 1 === r1 && Math.min(c0 + block, counts.cols) - 1 === c1;
      if (Number.isInteger(r) && Number.isInteger(c) && whole) {
        const at = r * Math.ceil(counts.cols / block) + c;
        return [held.low[at], held.high[at]];
      }
    }
    return null;
  }

  #label(label) {
    const found = this.release.byLabel.get(String(label));
    if (!found) return { count: 0, low: null, high: null, exact: true, why: "No such cell." };
    const { count, low = null, high = null } = found.properties;
    return { count, low, high, exact: true, why: low === null ? "This release has counts only." : "" };
  }

  #shape(query) {
    const { said, counts, bodies } = this.release;
    if (!counts) return { count: undefined, low: undefined, high: undefined, exact: true };
    const parts = this.rings(query);
    const { rows, cols } = counts;
    const mask = new Uint8Array(rows * cols);
    for (const rings of parts) polygonCells(rings, rows, cols).forEach((on, at) => on && (mask[at] = 1));
    const range = maskRange(mask, cols);
    if (!range) return { count: 0, low: null, high: null, exact: true, outside: true, mask };
    const cut = parts.flat(2).some(([r, c]) => r < 0 || c < 0 || r > rows || c > cols);
    const low = this.#unanswered();
    const rest = { low, high: low, mask, cut, around: range.cells, touched: range.n };
    if (bodies && said.shapes) {
      const count = bodies.touching(parts);
      return { ...rest, count, exact: true, asDrawn: true, why: low === null ? "This file has no intervals of drawn areas. For them: dpregions serve" : "" };
    }
    const count = range.full ? counts.rectangle(...range.cells) : counts.cells(mask);
    const ends = range.full && !said.covert ? this.#endsHeld(range.cells) : null;
    const found = { ...rest, count, exact: range.full, touchedOnly: true };
    if (ends && !this.transport.live) [found.low, found.high] = ends;
    else if (low === null) found.why = said.covert ? "This release has counts only." : "This file has no intervals of drawn areas. For them: dpregions serve";
    return found;
  }

  // Whether a place in rows and columns is inside an area.
  inside(query, row, col) {
    return this.rings(query).some((rings) => isInside([row, col], rings));
  }

  // Ask for what is not known yet; `then` gets the whole answer. The newest query wins.
  complete(query, then) {
    clearTimeout(this.timer);
    this.asking?.abort();
    const answer = this.now(query);
    const wanted = answer.low === undefined || (answer.touchedOnly && this.transport.live);
    if (!wanted || this.known.has(keyOf(query))) return;
    this.timer = setTimeout(() => this.#fetch(query, then), PATIENCE);
  }

  async #fetch(query, then) {
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      const [found] = query.kind === "cells"
        ? [await this.transport.rectangle(this.release.id, query.cells, signal)]
        : await this.transport.shapes(this.release.id, [this.feature(query)], this.release.said.mesh.plain, signal);
      if (signal.aborted) return;
      then(this.learn(query, found));
      this.tell(null);
    } catch (trouble) {
      if (signal.aborted || trouble.name === "AbortError") return;
      const refused = trouble instanceof Trouble && trouble.status >= 400 && trouble.status < 500;
      if (refused) return then({ ...this.now(query), low: null, high: null, why: trouble.message });
      this.tell(trouble);
      const wait = 1000 * Math.min(trouble.again || 2, 10);
      this.timer = setTimeout(() => this.#fetch(query, then), wait);
    }
  }

  learn(query, found) {
    const here = this.now(query);
    const low = found.low === null || found.low === undefined ? null : Math.floor(found.low);
    const high = low === null ? null : Math.ceil(found.high);
    const said = found.answered ?? found;
    const answer = { ...here, count: found.count, low, high, exact: said.exact ?? true, why: "" };
    if (query.kind === "shape") {
      answer.asDrawn = (said.within ?? found.within ?? "shape") === "shape";
      answer.touchedOnly = !answer.asDrawn;
      answer.outside = Boolean(said.outside ?? found.outside ?? here.outside);
    }
    if (low === null) answer.why = "This release has counts only.";
    this.known.set(keyOf(query), answer);
    return answer;
  }

  // Many areas at once, in one request.
  async many(queries) {
    const left = queries.filter((q) => q.kind === "shape" && !this.known.has(keyOf(q)));
    if (!left.length || !this.transport.live) return;
    const found = await this.transport.shapes(this.release.id, left.map((q) => this.feature(q)), this.release.said.mesh.plain);
    found?.forEach((answer, i) => this.learn(left[i], answer));
  }

  // A query as a GeoJSON feature: in degrees, or in the grid's units where it has no place on Earth.
  feature(query) {
    const { mesh, said } = this.release;
    const { grid } = said;
    const place = ([row, col]) => (said.mesh.plain && grid ? [grid.xmin + col * grid.cell, grid.ymin + row * grid.cell] : mesh.toDegrees(row, col));
    const close = (ring) => [...ring, ring[0]];
    const parts = query.kind === "cells"
      ? [[mesh.outline(query.cells[0], query.cells[1] + 1, query.cells[2], query.cells[3] + 1).map(place)]]
      : said.mesh.plain ? this.rings(query).map((rings) => rings.map((ring) => ring.map(place))) : query.parts;
    const coordinates = parts.map((rings) => rings.map(close));
    const geometry = coordinates.length === 1 ? { type: "Polygon", coordinates: coordinates[0] } : { type: "MultiPolygon", coordinates };
    return { type: "Feature", properties: { name: query.name }, geometry };
  }
}

export const keyOf = (query) =>
  query.kind === "cells" ? `c${query.cells}` : query.kind === "label" ? `l${query.label}` : `s${JSON.stringify(query.parts)}`;
