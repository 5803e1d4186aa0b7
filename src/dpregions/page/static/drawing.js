// Polygon, freehand and circle, by terra-draw. What is drawn is asked about as drawn.

import { shapeQuery } from "./state.js";

const MODES = ["polygon", "freehand", "circle"];

export class Drawing {
  // Loads the library when a tool is first used.
  constructor(view, state, places, { tell, live }) {
    Object.assign(this, { view, state, places, tell, live });
  }

  async #open() {
    const [library, { TerraDrawMapLibreGLAdapter }] = await Promise.all([import(this.places.draw), import(this.places.adapter)]);
    const { TerraDraw, TerraDrawPolygonMode, TerraDrawFreehandMode, TerraDrawCircleMode, TerraDrawSelectMode } = library;
    const look = { fillColor: "#c2410c", fillOpacity: 0.12, outlineColor: "#c2410c", outlineWidth: 2.5, closingPointColor: "#c2410c" };
    const edit = { feature: { draggable: true, coordinates: { midpoints: true, draggable: true, deletable: true } } };
    this.draw = new TerraDraw({
      adapter: new TerraDrawMapLibreGLAdapter({ map: this.view.map, coordinatePrecision: 9 }),
      modes: [
        new TerraDrawPolygonMode({ styles: look }),
        new TerraDrawFreehandMode({ styles: look, minDistance: 8 }),
        new TerraDrawCircleMode({ styles: look, drawInteraction: "click-move-or-drag" }),
        new TerraDrawSelectMode({
          flags: Object.fromEntries(MODES.map((mode) => [mode, mode === "polygon" ? edit : { feature: { draggable: true } }])),
          styles: { selectedPolygonColor: "#c2410c", selectedPolygonFillOpacity: 0.1, selectedPolygonOutlineColor: "#c2410c", selectedPolygonOutlineWidth: 2.5, selectionPointColor: "#ffffff", selectionPointOutlineColor: "#c2410c", selectionPointOutlineWidth: 2, selectionPointWidth: 6, midPointColor: "#fdba74", midPointOutlineColor: "#c2410c", midPointOutlineWidth: 1, midPointWidth: 4 },
        }),
      ],
    });
    this.draw.start();
    this.draw.setMode("static");
    this.draw.on("change", (ids, type) => this.#changed(ids, type));
    this.draw.on("finish", (id, context) => this.#finished(id, context));
  }

  async use(mode) {
    if (!this.draw) await (this.opening ??= this.#open());
    if (this.state.values.tool !== mode) return; // another was chosen meanwhile
    this.draw.clear();
    this.live(null);
    this.editing = this.mine = null;
    this.draw.setMode(mode);
  }

  // Another tool was chosen: what is half drawn is given up.
  rest() {
    if (!this.draw || this.mine || this.draw.getMode() === "select" || this.draw.getMode() === "static") return;
    this.draw.clear();
    this.draw.setMode("static");
    this.live(null);
  }

  #ring(id) {
    const feature = this.draw.getSnapshotFeature(id);
    return feature?.geometry.type === "Polygon" ? feature.geometry.coordinates[0] : null;
  }

  // Counts go with the pointer once there is an area.
  #changed(ids, type) {
    if (type === "delete") this.live(null); // by Escape
    if (type !== "update") return;
    for (const id of ids) {
      const feature = this.draw.getSnapshotFeature(id);
      if (!feature || !MODES.includes(feature.properties.mode)) continue;
      const ring = this.#ring(id);
      if (ring?.length > 3 && areaOf(ring) > 0) this.live(this.#query(ring, feature.properties.mode));
    }
  }

  #query(ring, how) {
    return shapeQuery([[ring]], { how, ...(this.editing ? { id: this.editing.id, name: this.editing.name } : {}) });
  }

  #finished(id, context) {
    const ring = this.#ring(id);
    if (!ring || areaOf(ring) === 0) {
      this.tell("These corners enclose no area, or its sides cross: draw it again.");
      this.draw.clear();
      this.live(null);
      return;
    }
    const { mode } = this.draw.getSnapshotFeature(id).properties;
    const query = this.#query(ring, mode);
    if (this.editing) query.id = this.editing.id;
    const drawn = context.action === "draw";
    this.mine = query;
    this.state.keep({ current: query, ...(drawn ? { tool: "move" } : {}) });
    if (drawn) {
      this.draw.setMode("select");
      this.draw.selectFeature(id);
      this.editing = query;
    }
  }

  // Handles are for the query that was drawn last, while it is the one at hand.
  follow(current) {
    if (!this.draw || !this.mine || this.state.values.tool !== "move") return;
    if (current?.id === this.mine.id && JSON.stringify(current.parts) === JSON.stringify(this.mine.parts)) return;
    this.mine = this.editing = null;
    this.draw.clear();
    this.draw.setMode("static");
  }
}

function areaOf(ring) {
  let twice = 0;
  ring.forEach(([x, y], i) => {
    const [x2, y2] = ring[(i + 1) % ring.length];
    twice += x * y2 - x2 * y;
  });
  return Math.abs(twice);
}
