// Without WebGL 2: the cells as a plain picture in rows and columns. The rectangle tool, the boxes and
// the table work as on the map; it neither zooms nor turns.

import { colourOf, faded, scaled } from "./colours.js";

export class PlainView {
  plain = true;
  place = null;

  constructor(element, mesh) {
    Object.assign(this, { element, mesh });
    this.surface = document.createElement("canvas");
    this.surface.className = "plain-cells";
    this.surface.tabIndex = 0;
    this.surface.setAttribute("role", "region");
    this.surface.setAttribute("aria-label", "Picture of counts. R draws a rectangle by keyboard.");
    element.append(this.surface);
    this.listeners = [];
    this.layer = { show: (...cells) => this.#show(...cells), look: null };
    new ResizeObserver(() => this.#repaint()).observe(element);
  }

  get size() {
    return [this.element.clientWidth, this.element.clientHeight];
  }

  onMove(then) {
    this.listeners.push(then);
  }

  // The largest size at which the whole grid fits, and where it begins.
  get #frame() {
    const [width, height] = this.size;
    const { rows, cols } = this.mesh;
    const side = Math.min((width - 60) / cols, (height - 60) / rows);
    return { side, x: (width - side * cols) / 2, y: (height + side * rows) / 2 };
  }

  toPixel(row, col) {
    const { side, x, y } = this.#frame;
    return [x + col * side, y - row * side];
  }

  toGrid(px, py) {
    const { side, x, y } = this.#frame;
    return [(y - py) / side, (px - x) / side];
  }

  pixelOf(lon, lat) {
    return this.toPixel(...this.mesh.fromDegrees(lon, lat));
  }

  toLonLat(x, y) {
    return this.mesh.toDegrees(...this.toGrid(x, y));
  }

  bounds() {
    return [0, 0, 0, 0];
  }

  cellPixels() {
    return this.#frame.side;
  }

  lock() {}
  dark() {}
  fit() {}
  turn() {}
  showOther() {}

  #show(data, r, mayBeEmpty, look) {
    this.shown = { data, r, mayBeEmpty, look };
    this.layer.look = look;
    this.#repaint();
  }

  #repaint() {
    if (!this.shown) return;
    const { data, r, look } = this.shown;
    const [width, height] = this.size;
    Object.assign(this.surface, { width, height });
    const context = this.surface.getContext("2d");
    const picture = new ImageData(data.cols, data.rows);
    data.values.forEach((value, i) => {
      const weight = look.fade && r ? faded(r[i]) : 1;
      const colour = colourOf(look, scaled(value, look.domain), weight, look.difference);
      const at = 4 * ((data.rows - 1 - Math.floor(i / data.cols)) * data.cols + (i % data.cols));
      picture.data.set([...colour.map((v) => v * 255), 255], at);
    });
    const small = new OffscreenCanvas(data.cols, data.rows);
    small.getContext("2d").putImageData(picture, 0, 0);
    const { side, x, y } = this.#frame;
    context.imageSmoothingEnabled = false;
    const whole = [data.cols * data.block * side, data.rows * data.block * side];
    context.save();
    context.beginPath();
    context.rect(x, y - this.mesh.rows * side, this.mesh.cols * side, this.mesh.rows * side);
    context.clip();
    context.drawImage(small, x, y - whole[1], ...whole);
    context.restore();
    this.listeners.forEach((then) => then());
  }
}
