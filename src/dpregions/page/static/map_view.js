// The map: MapLibre with the layer of cells. What is drawn over it (queries, handles, graticule) asks
// it where rows and columns are on the screen, and never which projection there is.

import { GridLayer } from "./grid_layer.js";
import { mercator } from "./grid_math.js";

const libraryAt = (place) => import(place);

export class MapView {
  // `places` has the addresses of the library, its worker and a basemap.
  static async open(element, mesh, places, { dark, embedded }) {
    const library = await libraryAt(places.maplibre);
    library.setWorkerUrl(places.worker);
    const view = new MapView();
    view.library = library;
    view.mesh = mesh;
    view.plain = mesh.plain;
    const [west, south, east, north] = mesh.bounds;
    view.map = new library.Map({
      container: element,
      style: { version: 8, sources: {}, layers: [{ id: "paper", type: "background" }] },
      bounds: [[west, south], [east, north]],
      fitBoundsOptions: { padding: view.#padding(element) },
      attributionControl: false,
      maplibreLogo: false,
      renderWorldCopies: false,
      maxPitch: 0,
      pitchWithRotate: false,
      maxZoom: 23,
      cooperativeGestures: embedded,
      fadeDuration: 0,
      canvasContextAttributes: { antialias: true },
    });
    view.map.addControl(new library.NavigationControl({ visualizePitch: false }), "top-right");
    if (!view.plain) view.map.addControl(new library.ScaleControl({ maxWidth: 110 }), "bottom-left");
    const canvas = view.map.getCanvas();
    canvas.setAttribute("aria-label", "Map of counts. Arrow keys move it, plus and minus zoom; R draws a rectangle by keyboard.");
    // Not by "load", which waits for tiles of a basemap.
    await new Promise((ready) => (view.map.isStyleLoaded() ? ready() : view.map.once("styledata", ready)));
    view.layer = new GridLayer("cells", mesh);
    view.other = new GridLayer("other", mesh);
    view.map.addLayer(view.layer);
    view.dark(dark);
    return view;
  }

  #padding(element) {
    const small = element.clientWidth < 700;
    return small
      ? { top: 84, bottom: 128, left: 14, right: 14 }
      : { top: 34, bottom: 136, left: 92, right: 66 };
  }

  get element() {
    return this.map.getContainer();
  }

  get surface() {
    return this.map.getCanvas();
  }

  get size() {
    return [this.element.clientWidth, this.element.clientHeight];
  }

  paper(colour) {
    if (this.map.getLayer("paper")) this.map.setPaintProperty("paper", "background-color", colour);
  }

  dark(on) {
    this.paper(on ? "#0d1217" : "#e9e7e1");
  }

  onMove(then) {
    this.map.on("move", then);
    this.map.on("resize", then);
  }

  toPixel(row, col) {
    const [lon, lat] = this.mesh.toDegrees(row, col);
    const { x, y } = this.map.project([lon, lat]);
    return [x, y];
  }

  toGrid(x, y) {
    const { lng, lat } = this.map.unproject([x, y]);
    return this.mesh.fromMercator(...mercator(lng, lat));
  }

  toLonLat(x, y) {
    const { lng, lat } = this.map.unproject([x, y]);
    return [lng, lat];
  }

  pixelOf(lon, lat) {
    const { x, y } = this.map.project([lon, lat]);
    return [x, y];
  }

  bounds() {
    const found = this.map.getBounds();
    return [found.getWest(), found.getSouth(), found.getEast(), found.getNorth()];
  }

  // How many pixels a cell is wide, at the middle of the grid.
  cellPixels() {
    const { rows, cols } = this.mesh;
    const [a, b] = [this.toPixel(rows / 2, cols / 2), this.toPixel(rows / 2, cols / 2 + 1)];
    return Math.hypot(b[0] - a[0], b[1] - a[1]);
  }

  lock(on) {
    for (const name of ["dragPan", "boxZoom", "doubleClickZoom"]) this.map[name][on ? "disable" : "enable"]();
  }

  fit(outline, options = {}) {
    const places = outline.map(([row, col]) => this.mesh.toDegrees(row, col));
    const [lons, lats] = [places.map((p) => p[0]), places.map((p) => p[1])];
    const box = [[Math.min(...lons), Math.min(...lats)], [Math.max(...lons), Math.max(...lats)]];
    this.map.fitBounds(box, { padding: this.#padding(this.element), animate: false, maxZoom: 21, ...options });
  }

  turn(bearing) {
    this.map.rotateTo(bearing, { animate: false });
  }

  get place() {
    const { lng, lat } = this.map.getCenter();
    return { zoom: this.map.getZoom(), lon: lng, lat, bearing: this.map.getBearing() };
  }

  set place({ zoom, lon, lat, bearing }) {
    this.map.jumpTo({ zoom, center: [lon, lat], bearing });
  }

  showOther(on, part) {
    if (on && !this.map.getLayer("other")) this.map.addLayer(this.other);
    if (!on && this.map.getLayer("other")) this.map.removeLayer("other");
    this.layer.side = on ? [0, part] : null;
    this.other.side = on ? [part, 1] : null;
    this.map.triggerRepaint();
  }

  // Cells of any shape, as GeoJSON with `colour` and `weight` among their properties.
  showShapes(features) {
    const data = { type: "FeatureCollection", features };
    const source = this.map.getSource("shapes");
    if (source) return source.setData(data);
    this.map.addSource("shapes", { type: "geojson", data });
    this.map.addLayer({ id: "shapes", type: "fill", source: "shapes", paint: { "fill-color": ["get", "colour"], "fill-antialias": false } });
    this.map.addLayer({ id: "sides", type: "line", source: "shapes", paint: { "line-color": "#6b7280", "line-width": 0.8, "line-opacity": 0.55 } });
  }

  // Lines and areas of a PMTiles file, below the cells.
  async addBasemap(address, place, dark) {
    const { PMTiles, Protocol } = await libraryAt(place);
    const protocol = new Protocol();
    const file = new PMTiles(address);
    protocol.add(file);
    this.library.addProtocol("pmtiles", protocol.tile);
    const [header, said] = await Promise.all([file.getHeader(), file.getMetadata()]);
    const url = `pmtiles://${address}`;
    if (header.tileType === 1) {
      this.map.addSource("basemap", { type: "vector", url, attribution: said.attribution });
      const line = dark ? "#8fa1b3" : "#59636e";
      for (const { id } of said.vector_layers ?? []) {
        const base = { source: "basemap", "source-layer": id };
        this.map.addLayer({ ...base, id: `base-fill-${id}`, type: "fill", filter: ["==", ["geometry-type"], "Polygon"], paint: { "fill-color": line, "fill-opacity": 0.09 } }, "cells");
        this.map.addLayer({ ...base, id: `base-line-${id}`, type: "line", paint: { "line-color": line, "line-width": 0.9, "line-opacity": 0.7 } }, "cells");
      }
    } else {
      this.map.addSource("basemap", { type: "raster", url, tileSize: 256, attribution: said.attribution });
      this.map.addLayer({ id: "base", type: "raster", source: "basemap" }, "cells");
    }
    this.map.addControl(new this.library.AttributionControl({ compact: false }), "bottom-right");
    this.layer.restyle({ clear: true });
    this.hasBasemap = true;
  }
}
