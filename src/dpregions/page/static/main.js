// The page: opens a release, puts its parts together, and keeps them in step with the state.

import { Answers } from "./answers.js";
import { showCard, Table } from "./card.js";
import { Cells } from "./cells.js";
import { Compare } from "./compare.js";
import { Drawing } from "./drawing.js";
import { areasFrom, fromGeoJSON } from "./files.js";
import { Bodies, Counts, Mesh, RectangleIntervals } from "./grid_math.js";
import { Keyboard } from "./keyboard.js";
import { Legend } from "./legend.js";
import { decodeState, encodeState } from "./link_state.js";
import { showLocator } from "./locator.js";
import { MapView } from "./map_view.js";
import { showDownloads } from "./downloads.js";
import { Overlay } from "./overlay.js";
import { copyText, Panel } from "./panel.js";
import { PlainView } from "./plain_view.js";
import { Rectangle } from "./rectangle.js";
import { ShapeCells } from "./shape_cells.js";
import { labelsQuery, rectangleQuery, START, State } from "./state.js";
import { Toolbar } from "./toolbar.js";
import { isKnown, number, range, sentence } from "./words.js";

const by = (id) => document.getElementById(id);

export async function start(transport, options) {
  const page = new Page(transport, options);
  window.explorer = page; // for the console of whoever is curious, and for tests
  try {
    await page.open();
  } catch (trouble) {
    page.fail(trouble);
  }
  return page;
}

class Page {
  constructor(transport, { id = "", places, embedded = false }) {
    Object.assign(this, { transport, id, places, embedded });
    this.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  }

  fail(trouble) {
    document.body.classList.add("failed");
    by("name").textContent = "This release cannot be shown";
    this.alarm(trouble.message);
    throw trouble;
  }

  alarm(text) {
    by("alarm").textContent = text;
    by("alarm").hidden = !text;
  }

  tell(text) {
    by("hint").textContent = text;
    by("hint").hidden = !text;
    if (text) this.say(text);
  }

  // At most once a second, and only the newest.
  say(text) {
    this.next = text;
    this.speaking ??= setTimeout(() => {
      by("spoken").textContent = this.next;
      this.speaking = null;
    }, this.spokenBefore ? 1000 : 0);
    this.spokenBefore = true;
  }

  banner(trouble) {
    const host = by("banner");
    host.hidden = !trouble;
    if (!trouble) return;
    const wait = trouble.again ? ` (about ${Math.ceil(trouble.again)} s)` : "";
    host.textContent = trouble.status === 503
      ? `Counts are ready; intervals are being prepared${wait}.`
      : trouble.status ? trouble.message : "Intervals are paused: the server does not answer. Trying again. Counts go on.";
  }

  async open() {
    const releases = await this.transport.releases();
    this.id ||= releases[0]?.id ?? "";
    if (this.transport.kind !== "server") this.id = "here";
    const said = await this.transport.described(this.id);
    this.setTheme(this.dark);
    this.#head(said, releases);
    showCard(by("card"), said);
    const frame = said.frame;
    const mesh = new Mesh(said.mesh, frame.rows, frame.cols);
    mesh.plain = said.mesh.plain;
    this.release = { id: this.id, said, mesh, ends: new Map() };
    const { values, place } = decodeState(location.hash, frame);
    this.state = new State(values);
    await this.#openView(mesh);
    if (place && this.view.map) this.view.place = place;
    this.banner(null);
    const [bodies, rectangles] = [this.transport.bodies(), said.every_rectangle ? this.transport.rectangles() : null];
    if (said.grid) this.release.counts = new Counts(await this.transport.components(this.id), frame.rows, frame.cols);
    else this.#takeCells(await this.transport.cells(this.id));
    const held = await bodies;
    if (held) this.release.bodies = new Bodies(held);
    const all = await rectangles;
    if (all) this.release.rectangles = new RectangleIntervals(all, this.release.counts);
    this.#assemble();
    document.body.classList.add("ready");
    await this.#arrive();
  }

  #takeCells(cells) {
    this.release.features = cells.features;
    this.release.byLabel = new Map(cells.features.map((f) => [String(f.properties.label), f]));
  }

  #head(said, releases) {
    document.title = `${said.name} · dpregions explorer`;
    by("name").textContent = said.name;
    const whose = { user: "one region for each person", record: "one region for each record", trajectory: "one region for each trip" }[said.unit];
    by("promise").replaceChildren(`ε = ${said.epsilon} · ${whose}`, Object.assign(document.createElement("span"), { textContent: ` · made with dpregions ${said.version}` }));
    if (!said.private) this.alarm("NOT PRIVATE: this file is a study’s. Do not publish it.");
    this.others = releases.filter(({ id }) => id !== this.id);
    by("which-choice").hidden = !this.others.length;
    by("which").replaceChildren(...releases.map(({ id, name }) => new Option(name, id, id === this.id, id === this.id)));
    by("which").addEventListener("change", () => (location.href = `/r/${encodeURIComponent(by("which").value)}`));
    by("versus-choice").hidden = !this.others.length || !said.grid;
    by("versus").replaceChildren(...[["", "none"], ...this.others.map(({ id, name }) => [id, name])].map(([value, text]) => new Option(text, value)));
  }

  async #openView(mesh) {
    const options = { dark: this.dark, embedded: this.embedded };
    try {
      this.view = await MapView.open(by("map"), mesh, this.places, options);
    } catch (trouble) {
      by("map").replaceChildren();
      this.view = new PlainView(by("map"), mesh, options);
      this.tell("This browser has no WebGL 2, so the map is a plain picture. All numbers are the same.");
    }
  }

  #assemble() {
    const { view, release, state, transport } = this;
    this.answers = new Answers(release, transport, (trouble) => this.banner(trouble));
    this.overlay = new Overlay(view, release, this.answers);
    this.cells = release.counts ? new Cells(view, release, transport, state) : new ShapeCells(view, release, state);
    this.legend = new Legend(by("legend"), release, state);
    this.panel = new Panel(document.body, release, this.answers, state, {
      zoomTo: (query) => this.zoomTo(query),
      download: (kind) => this.downloads.keepSaved(kind),
    });
    this.panel.onFile = (file) => file && this.addAreas(file);
    this.table = new Table(by("table"), (query) => {
      state.keep({ current: query });
      this.zoomTo(query);
    });
    const tell = (text) => this.tell(text);
    if (release.counts) {
      this.rectangle = new Rectangle(view, this.overlay, state, release.mesh, tell);
      this.keyboard = new Keyboard(view, this.overlay, state, release.mesh, { tell, say: (text) => this.say(text), canDraw: true });
    }
    const canDraw = Boolean(view.map) && (release.counts || transport.live);
    if (canDraw) this.drawing = new Drawing(view, state, this.places, { tell, live: (query) => this.#live(query) });
    this.toolbar = new Toolbar(by("tools"), state, {
      rectangle: Boolean(release.counts), drawing: canDraw, mesh: release.mesh, view,
      addAreas: () => by("areas-file").click(), whole: () => view.fit(release.mesh.outline(0, release.mesh.rows, 0, release.mesh.cols)),
    });
    this.compare = new Compare(view, release, transport, state, this.cells);
    this.downloads = showDownloads(by("download-list"), this);
    this.#listen();
  }

  #listen() {
    const { state, view } = this;
    state.on("current", () => this.#showCurrent());
    state.on("current saved", () => {
      this.panel.showSaved(state.values);
      this.overlay.show(state.values);
      this.drawing?.follow(state.values.current);
    });
    if (this.transport.selected) state.on("current saved", (values) => this.#select(values));
    state.on("saved", ({ saved }) => this.#answerSaved(saved));
    state.on("detail fade compare", () => this.paint());
    state.on("part", ({ part }) => this.compare.swipeTo(part));
    state.on("versus", () => this.#versus());
    state.on("tool", ({ tool }) => this.#tool(tool));
    state.on("current saved detail fade versus compare", () => this.#link());
    state.on("steps", ({ steps }) => (by("undo").disabled = !steps));
    by("undo").disabled = true;
    by("undo").addEventListener("click", () => state.undo());
    by("link").addEventListener("click", () => this.#copyLink());
    by("theme").addEventListener("click", () => {
      this.setTheme(!this.dark);
      this.paint();
    });
    by("versus").addEventListener("change", () => state.set({ versus: by("versus").value }));
    by("grip").addEventListener("click", () => this.#grip());
    addEventListener("hashchange", () => this.#fromLink());
    view.map?.on("moveend", () => {
      this.#link();
      if (this.cells.block !== this.shown?.block) this.paint();
    });
    this.#hovering();
    this.#dropping();
  }

  async #arrive() {
    const { state } = this;
    this.panel.showSaved(state.values);
    this.#showCurrent();
    this.overlay.show(state.values);
    this.paint();
    this.#answerSaved(state.values.saved);
    if (this.places.land && !this.view.plain) showLocator(by("locator"), this.release.mesh, this.places.land);
    else by("locator").hidden = true;
    if (state.values.versus) {
      by("versus").value = state.values.versus;
      this.#versus();
    }
    this.#extras().catch(() => {}); // overlay and basemap are a plus: without them the page is whole
    await this.#details();
    document.body.classList.add("settled");
  }

  async #details() {
    for (let wait = 1; ; wait = Math.min(2 * wait, 10)) {
      try {
        await this.cells.chooseDetail();
        this.banner(null);
        return this.paint();
      } catch (trouble) {
        this.banner(trouble);
        await new Promise((then) => setTimeout(then, 1000 * (trouble.again || wait)));
      }
    }
  }

  async #extras() {
    const areas = await this.transport.overlay();
    if (areas) {
      this.overlay.areas = fromGeoJSON(areas);
      this.overlay.draw();
      this.areas = this.overlay.areas;
    }
    const basemap = this.view.map && !this.view.plain ? await this.transport.basemap() : null;
    if (basemap) {
      await this.view.addBasemap(basemap, this.places.pmtiles, this.dark);
      this.paint();
    }
  }

  async paint() {
    this.shown = this.cells.draw(this.dark);
    this.legend.show(this.shown, this.state.values);
    this.#tabulate();
    const { block } = this.shown;
    if (this.release.counts && !this.shown.figures) {
      this.cells.ends(block).then(({ figures }) => figures && this.cells.block === block && this.shown.figures !== figures && this.paint(), (trouble) => this.banner(trouble));
    }
    const turn = (this.turn = (this.turn ?? 0) + 1); // a later painting makes this one void
    const compared = await this.compare.draw(this.shown, this.dark, () => turn === this.turn).catch((trouble) => (this.banner(trouble), null));
    if (compared && turn === this.turn) this.legend.show(compared, this.state.values);
  }

  #tabulate() {
    if (!this.release.counts) return this.table.show("cells", () => this.cells.all());
    const { block } = this.shown;
    this.table.show(block === 1 ? "cells" : `blocks of ${block} × ${block} cells`, () =>
      this.cells.all().map((answer) => {
        const [r0, r1, c0, c1] = answer.cells;
        const name = block === 1 ? `row ${r0}, column ${c0}` : `rows ${r0} to ${r1}, columns ${c0} to ${c1}`;
        return [name, answer, rectangleQuery(answer.cells)];
      }),
    );
  }

  #showCurrent() {
    const { current } = this.state.values;
    const answer = current && this.answers.now(current);
    this.panel.show(current, answer);
    this.panel.fillBoxes(current);
    if (!current) return;
    const { unit } = this.release.said;
    if (answer.low !== undefined) this.say(sentence(answer, unit));
    this.answers.complete(current, (whole) => {
      if (this.state.values.current !== current) return;
      this.panel.show(current, whole);
      this.panel.showSaved(this.state.values);
      this.overlay.draw();
      this.say(sentence(whole, unit));
    });
    this.#compareCurrent(current);
  }

  async #compareCurrent(current) {
    const { compare } = this;
    if (!compare?.other) return;
    const rows = await compare.rows(current).catch((trouble) => [trouble.message]);
    if (this.state.values.current !== current || !rows.length) return;
    this.panel.parts.notes.append(...rows.filter(Boolean).map((text) => Object.assign(document.createElement("li"), { textContent: text, className: "versus" })));
  }

  // As it was when it was opened, without what was asked.
  reset() {
    this.state.set({ ...START, detail: 0, fade: true });
    this.tell("");
    this.view.fit(this.release.mesh.outline(0, this.release.mesh.rows, 0, this.release.mesh.cols));
  }

  // A notebook's kernel is told what is asked and saved.
  #select({ current, saved }) {
    const queries = [...saved, ...(current && !saved.some((q) => q.id === current.id) ? [current] : [])];
    const features = queries.filter((q) => q.kind !== "label").map((query) => {
      const feature = this.answers.feature(query);
      return { ...feature, properties: { name: query.name, ...(query.kind === "cells" ? { cells: query.cells } : {}) } };
    });
    this.transport.selected(features, this.release.said.mesh.plain);
  }

  // A drawing under way: its count, without an interval. Null: it was given up, so the numbers are
  // those of the query on the map again.
  #live(query) {
    if (query) this.panel.show(query, this.answers.now(query));
    else if (this.underWay) this.#showCurrent();
    this.underWay = Boolean(query);
  }

  async #answerSaved(saved) {
    try {
      await this.answers.many(saved);
      for (const query of saved.filter((q) => q.kind === "cells" && this.answers.now(q).low === undefined)) {
        this.answers.learn(query, await this.transport.rectangle(this.id, query.cells));
      }
      this.panel.showSaved(this.state.values);
    } catch (trouble) {
      this.banner(trouble);
    }
  }

  async #versus() {
    const { versus } = this.state.values;
    try {
      const refused = await this.compare.load(versus);
      if (refused) this.tell(refused);
    } catch (trouble) {
      this.tell(trouble.message);
      return;
    }
    if (this.compare.other && !this.state.values.compare) this.state.set({ compare: "swipe" });
    else this.paint();
    if (!this.compare.other) this.state.set({ compare: "" });
    this.toolbar.comparing(Boolean(this.compare.other), this.state.values.compare);
    this.#showCurrent();
  }

  #tool(tool) {
    const draws = ["polygon", "freehand", "circle"].includes(tool);
    this.view.lock(tool === "rectangle" && !matchMedia("(pointer: coarse)").matches);
    this.view.element.classList.toggle("crosshair", tool !== "move");
    if (tool !== "rectangle") this.rectangle?.cancel();
    if (draws) this.drawing.use(tool);
    else this.drawing?.rest();
    const words = {
      rectangle: matchMedia("(pointer: coarse)").matches ? "Tap one corner, then the opposite one." : "Drag over the map, or click two corners. Shift keeps the middle.",
      polygon: "Click corner after corner; click the first one again to finish.",
      freehand: "Click to begin, move around the area, click to finish.",
      circle: "Click the middle, then the rim; or drag.",
    };
    this.tell(words[tool] ?? "");
    this.overlay.draw();
  }

  zoomTo(query) {
    const target = query ?? this.state.values.current;
    if (!target) return;
    const [width, height] = this.view.size;
    const places = this.overlay.outlineOf(target);
    const seen = places.every(([x, y]) => x > 0 && y > 0 && x < width && y < height);
    if (!query && seen) return;
    if (seen && this.#isLarge(places, width, height)) return;
    const rows = target.kind === "cells" ? this.release.mesh.outline(target.cells[0], target.cells[1] + 1, target.cells[2], target.cells[3] + 1) : places.map(([x, y]) => this.view.toGrid(x, y));
    this.view.fit(rows, { maxZoom: 17 });
  }

  #isLarge(places, width, height) {
    const [xs, ys] = [places.map((p) => p[0]), places.map((p) => p[1])];
    return Math.max(...xs) - Math.min(...xs) > width / 12 || Math.max(...ys) - Math.min(...ys) > height / 12;
  }

  #hovering() {
    const host = by("hover");
    const show = (event) => {
      const box = this.view.element.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const found = this.release.counts ? this.cells.at(...this.view.toGrid(x, y)) : this.cells.at(this.view.toLonLat(x, y));
      host.hidden = !found || this.state.values.tool !== "move";
      if (host.hidden) return;
      const ends = isKnown(found) ? ` (${range(found)})` : "";
      host.textContent = `${found.label ? `${found.label}: ` : ""}${number(found.count)}${ends}${found.low === 0 ? " · may be empty" : ""}`;
      host.style.transform = `translate(${Math.min(x + 14, box.width - 190)}px, ${Math.max(y - 34, 4)}px)`;
    };
    const { element, surface } = this.view;
    element.addEventListener("pointermove", (event) => {
      if (event.pointerType === "touch" || event.target !== surface || event.buttons) host.hidden = true;
      else show(event);
    });
    element.addEventListener("pointerleave", () => (host.hidden = true));
    let pressed = null;
    element.addEventListener("pointerdown", (event) => (pressed = event.target === surface ? [event.clientX, event.clientY] : null));
    element.addEventListener("pointerup", (event) => {
      const still = pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) < 6;
      if (!still || this.state.values.tool !== "move") return;
      if (event.pointerType === "touch") show(event);
      this.#clicked(event);
    });
  }

  // A click asks about an area of the overlay, or about a cell of a partition.
  #clicked(event) {
    const box = this.view.element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (!this.release.counts) {
      const found = this.cells.at(this.view.toLonLat(x, y));
      if (found) this.state.keep({ current: labelsQuery(found.label) });
      return;
    }
    const [row, col] = this.view.toGrid(x, y);
    const area = this.areas?.find((query) => this.answers.inside(query, row, col));
    if (area) this.state.keep({ current: area });
  }

  #dropping() {
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => {
      event.preventDefault();
      const [file] = event.dataTransfer?.files ?? [];
      if (file) this.addAreas(file);
    });
  }

  async addAreas(file) {
    try {
      const queries = await areasFrom(file);
      if (!this.release.counts && !this.transport.live) throw new Error("This file has no counts of areas: ask them of dpregions serve.");
      this.tell(`${queries.length} areas of ${file.name}`);
      await this.answers.many(queries);
      this.state.keep({ saved: [...this.state.values.saved, ...queries] });
    } catch (trouble) {
      this.tell(trouble instanceof SyntaxError ? `${file.name} cannot be read: GeoJSON or CSV is needed.` : trouble.message);
    }
  }

  #link() {
    const { text } = encodeState(this.state.values, this.view.place);
    this.linked = `#${text}`;
    try {
      history.replaceState(null, "", this.linked);
    } catch {
      // A page in a sandboxed frame has no address of its own.
    }
  }

  #fromLink() {
    if (location.hash === this.linked) return;
    const { values, place } = decodeState(location.hash, this.release.said.frame);
    this.state.keep({ current: null, saved: [], ...values });
    if (place && this.view.map) this.view.place = place;
  }

  async #copyLink() {
    const { text, tooLong } = encodeState(this.state.values, this.view.place);
    if (tooLong) {
      this.tell("This is too much for a link: download the saved queries as GeoJSON instead.");
      return;
    }
    const done = await copyText(`${location.href.split("#")[0]}#${text}`);
    by("link").textContent = done ? "Copied" : "Not allowed";
    setTimeout(() => (by("link").textContent = "Copy link"), 1500);
  }

  #grip() {
    const panel = by("panel");
    const stops = ["", "half", "full"];
    const next = stops[(stops.indexOf(panel.dataset.stop ?? "") + 1) % 3];
    panel.dataset.stop = next;
    by("grip").setAttribute("aria-expanded", String(next !== ""));
  }

  setTheme(dark) {
    this.dark = dark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    by("theme").textContent = dark ? "Light" : "Dark";
    this.view?.dark(dark);
  }
}

