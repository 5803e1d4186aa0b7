// The page's arithmetic: counts of rectangles, where cells lie, blocks, shapes. It knows no DOM, so
// that tests run it beside the library. Rows count from the lower side of the area, columns from
// the left; ends of ranges are included, as in the library.

export const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

// Numbers as payload.py packs them: bytes of each, how many, then a plane for each byte.
export function unpack(buffer, at = 0) {
  const head = new DataView(buffer, at, 8);
  const size = head.getUint32(0, true);
  const n = head.getUint32(4, true);
  const planes = new Uint8Array(buffer, at + 8, size * n);
  const values = size <= 4 ? new Uint32Array(n) : new Float64Array(n);
  for (let k = size - 1; k >= 0; k--) {
    const from = k * n;
    for (let i = 0; i < n; i++) values[i] = values[i] * 256 + planes[from + i];
  }
  return [values, at + 8 + size * n];
}

const signed = (v) => (v % 2 ? -(v + 1) / 2 : v / 2);

// Every question about a rectangle of cells is four looks into one table: the signed sums of the
// doubled array of faces, edges and vertices, from its first entry on.
export class Counts {
  constructor(buffer, rows, cols) {
    this.rows = rows;
    this.cols = cols;
    const [steps] = unpack(buffer);
    const height = 2 * rows - 1;
    const width = 2 * cols - 1;
    const table = new Float64Array((height + 1) * (width + 1));
    const line = new Float64Array(width);
    for (let i = 0, at = 0; i < height; i++) {
      let value = 0;
      let sum = 0;
      for (let j = 0; j < width; j++, at++) {
        value += signed(steps[at]);
        line[j] += value; // the count of this component
        sum += (i + j) % 2 ? -line[j] : line[j];
        table[(i + 1) * (width + 1) + j + 1] = table[i * (width + 1) + j + 1] + sum;
      }
    }
    this.table = table;
    this.stride = width + 1;
  }

  rectangle(r0, r1, c0, c1) {
    const { table, stride } = this;
    const low = 2 * r0 * stride;
    const high = (2 * r1 + 1) * stride;
    return (
      table[high + 2 * c1 + 1] - table[high + 2 * c0] - table[low + 2 * c1 + 1] + table[low + 2 * c0]
    );
  }

  // The signed entry of one component.
  component(i, j) {
    const { table, stride } = this;
    const a = i * stride + j;
    const b = a + stride;
    return table[b + 1] - table[b] - table[a + 1] + table[a];
  }

  // The Euler sum over cells that form any shape, given as a mask row by row.
  cells(mask) {
    let sum = 0;
    const { rows, cols } = this;
    const has = (r, c) => mask[r * cols + c];
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < cols; c++) {
        if (!has(r, c)) continue;
        sum += this.component(2 * r, 2 * c);
        const right = c + 1 < cols && has(r, c + 1);
        const up = r + 1 < rows && has(r + 1, c);
        if (right) sum += this.component(2 * r, 2 * c + 1);
        if (up) sum += this.component(2 * r + 1, 2 * c);
        if (right && up && has(r + 1, c + 1)) sum += this.component(2 * r + 1, 2 * c + 1);
      }
    }
    return sum;
  }

  // Counts of all blocks of cells, row by row; blocks at the upper and right border are cut.
  blocks(block) {
    const rows = Math.ceil(this.rows / block);
    const cols = Math.ceil(this.cols / block);
    const values = new Float64Array(rows * cols);
    for (let r = 0, at = 0; r < rows; r++) {
      const r0 = r * block;
      const r1 = Math.min(r0 + block, this.rows) - 1;
      for (let c = 0; c < cols; c++, at++) {
        const c0 = c * block;
        values[at] = this.rectangle(r0, r1, c0, Math.min(c0 + block, this.cols) - 1);
      }
    }
    return { block, rows, cols, values };
  }
}

// Ends of intervals, of blocks or of all rectangles: beside counts, in the same order.
export function unpackEnds(buffer, counts) {
  const [below, next] = unpack(buffer);
  const [width] = unpack(buffer, next);
  const low = new Float64Array(width.length);
  const high = new Float64Array(width.length);
  for (let i = 0; i < width.length; i++) {
    low[i] = counts(i) - signed(below[i]);
    high[i] = low[i] + width[i];
  }
  return { low, high };
}

// The number of a pair i <= j among all pairs below n, in the order (0,0), (0,1), ..., (1,1), ...
const pairNumber = (i, j, n) => i * n - (i * (i - 1)) / 2 + j - i;

export class RectangleIntervals {
  constructor(buffer, counts) {
    this.counts = counts;
    [this.below, this.next] = unpack(buffer);
    [this.width] = unpack(buffer, this.next);
  }

  of(r0, r1, c0, c1) {
    const { rows, cols } = this.counts;
    const at = pairNumber(r0, r1, rows) * ((cols * (cols + 1)) / 2) + pairNumber(c0, c1, cols);
    const low = this.counts.rectangle(r0, r1, c0, c1) - signed(this.below[at]);
    return [low, low + this.width[at]];
  }
}

// Mercator's plane, in the units of MapLibre: the world is 1 wide, y grows to the south.
export const mercator = (lon, lat) => [
  (180 + lon) / 360,
  (180 - (180 / Math.PI) * Math.log(Math.tan(Math.PI / 4 + (lat * Math.PI) / 360))) / 360,
];
export const degrees = (x, y) => [
  x * 360 - 180,
  (360 / Math.PI) * Math.atan(Math.exp(((180 - y * 360) * Math.PI) / 180)) - 90,
];

// Where rows and columns are on the map. The mesh has a place for each corner of its patches; within
// a patch Mercator's coordinates are taken as bilinear, as the map draws it, so what is drawn and
// what is asked are the same.
export class Mesh {
  constructor({ patches, lon, lat }, rows, cols) {
    this.n = patches;
    this.rows = rows;
    this.cols = cols;
    const [lons, lats] = [lon, lat].map((text) => new Float64Array(bytesOf(text).buffer));
    const side = patches + 1;
    this.x = new Float64Array(side * side);
    this.y = new Float64Array(side * side);
    for (let i = 0; i < side * side; i++) [this.x[i], this.y[i]] = mercator(lons[i], lats[i]);
    this.bounds = [Math.min(...lons), Math.min(...lats), Math.max(...lons), Math.max(...lats)];
    this.world = [Math.min(...this.x), Math.min(...this.y), Math.max(...this.x), Math.max(...this.y)];
  }

  // Mercator's coordinates of a place in rows and columns, also somewhat beyond the area.
  toMercator(row, col) {
    const { n, x, y } = this;
    const v = (row / this.rows) * n;
    const u = (col / this.cols) * n;
    const i = Math.min(Math.max(Math.floor(v), 0), n - 1);
    const j = Math.min(Math.max(Math.floor(u), 0), n - 1);
    const b = v - i;
    const a = u - j;
    const at = i * (n + 1) + j;
    const mix = (p) =>
      (p[at] * (1 - a) + p[at + 1] * a) * (1 - b) + (p[at + n + 1] * (1 - a) + p[at + n + 2] * a) * b;
    return [mix(x), mix(y)];
  }

  toDegrees(row, col) {
    return degrees(...this.toMercator(row, col));
  }

  // Rows and columns of a place in Mercator's plane: Newton's steps, on one patch after another.
  fromMercator(px, py) {
    const step = 1e-3;
    let [row, col] = [this.rows / 2, this.cols / 2];
    for (let k = 0; k < 40; k++) {
      const [x, y] = this.toMercator(row, col);
      // Differences within the patch that the place is on: its bilinear form has these slopes.
      const dr = this.#inward(row, this.rows, step);
      const dc = this.#inward(col, this.cols, step);
      const [xr, yr] = this.toMercator(row + dr, col);
      const [xc, yc] = this.toMercator(row, col + dc);
      const [ar, br, ac, bc] = [(xr - x) / dr, (yr - y) / dr, (xc - x) / dc, (yc - y) / dc];
      const det = ar * bc - ac * br;
      if (!det) return [NaN, NaN];
      const [ex, ey] = [px - x, py - y];
      const [sr, sc] = [(ex * bc - ac * ey) / det, (ar * ey - ex * br) / det];
      row += sr;
      col += sc;
      if (Math.abs(sr) + Math.abs(sc) < 1e-9) break;
      // Far outside there is nothing to find: stay where bilinear patches make sense.
      row = Math.min(Math.max(row, -this.rows), 2 * this.rows);
      col = Math.min(Math.max(col, -this.cols), 2 * this.cols);
    }
    return [row, col];
  }

  #inward(value, whole, step) {
    const patch = whole / this.n;
    const d = step * patch;
    return (((value % patch) + patch) % patch) + d > patch ? -d : d;
  }

  fromDegrees(lon, lat) {
    return this.fromMercator(...mercator(lon, lat));
  }

  // How far the grid's columns lean from north at its middle, in degrees, clockwise.
  lean() {
    const [x0, y0] = this.toMercator(this.rows / 2 - 0.5, this.cols / 2);
    const [x1, y1] = this.toMercator(this.rows / 2 + 0.5, this.cols / 2);
    return (Math.atan2(x1 - x0, y0 - y1) * 180) / Math.PI;
  }

  // The outline of rows r0..r1 and columns c0..c1 (lines, not cells), densified along its sides.
  outline(r0, r1, c0, c1, points = 8) {
    const ring = [];
    const side = (ra, ca, rb, cb) => {
      for (let k = 0; k < points; k++) {
        const t = k / points;
        ring.push([ra + (rb - ra) * t, ca + (cb - ca) * t]);
      }
    };
    side(r0, c0, r0, c1);
    side(r0, c1, r1, c1);
    side(r1, c1, r1, c0);
    side(r1, c0, r0, c0);
    return ring;
  }
}

// The cells that a rectangle of lines touches, inside the area; null: none. What lies within a
// millionth of a line is on it.
export function cellsTouched(r0, r1, c0, c1, rows, cols) {
  const near = 1e-6;
  const range = (a, b, n) => {
    const [low, high] = a < b ? [a, b] : [b, a];
    const first = Math.max(Math.floor(low + near), 0);
    const last = Math.min(Math.max(Math.ceil(high - near) - 1, Math.floor(low + near)), n - 1);
    return first > last ? null : [first, last];
  };
  const [row, col] = [range(r0, r1, rows), range(c0, c1, cols)];
  return row && col ? [...row, ...col] : null;
}

// Which cells the inside of a polygon touches: rings of [row, col], the first is the outer one.
export function polygonCells(rings, rows, cols) {
  const mask = new Uint8Array(rows * cols);
  const near = 1e-9;
  const edges = [];
  for (const ring of rings) {
    for (let i = 0; i < ring.length; i++) {
      const [a, b] = [ring[i], ring[(i + 1) % ring.length]];
      edges.push([a[0], a[1], b[0], b[1]]);
    }
  }
  const mark = (r, from, to) => {
    const c0 = Math.max(Math.floor(from + near), 0);
    const c1 = Math.min(Math.ceil(to - near) - 1, cols - 1);
    for (let c = c0; c <= c1; c++) mask[r * cols + c] = 1;
  };
  for (let r = 0; r < rows; r++) {
    // The columns that sides cross within this row of cells, and the inside along its middle.
    for (const [ra, ca, rb, cb] of edges) {
      const [low, high] = ra < rb ? [ra, rb] : [rb, ra];
      if (high <= r + near || low >= r + 1 - near) continue;
      const at = (row) => (ra === rb ? ca : ca + ((row - ra) / (rb - ra)) * (cb - ca));
      const ends = ra === rb ? [ca, cb] : [at(Math.max(low, r)), at(Math.min(high, r + 1))];
      mark(r, Math.min(...ends), Math.max(...ends));
    }
    const crossed = [];
    for (const [ra, ca, rb, cb] of edges) {
      if (ra > r + 0.5 !== rb > r + 0.5) crossed.push(ca + ((r + 0.5 - ra) / (rb - ra)) * (cb - ca));
    }
    crossed.sort((p, q) => p - q);
    for (let k = 0; k + 1 < crossed.length; k += 2) mark(r, crossed[k], crossed[k + 1]);
  }
  return mask;
}

// The bounding rectangle of marked cells, and whether they fill it; null where none is marked.
export function maskRange(mask, cols) {
  let [r0, r1, c0, c1, n] = [Infinity, -1, Infinity, -1, 0];
  mask.forEach((on, at) => {
    if (!on) return;
    const [r, c] = [Math.floor(at / cols), at % cols];
    [r0, r1, c0, c1] = [Math.min(r0, r), r1 < r ? r : r1, Math.min(c0, c), c1 < c ? c : c1];
    n += 1;
  });
  return n ? { cells: [r0, r1, c0, c1], full: n === (r1 - r0 + 1) * (c1 - c0 + 1), n } : null;
}

// The published bodies, to count those that touch a shape. Corners are in cells from the lower left
// cell of a body; bodies of one shape lie at many places.
export class Bodies {
  constructor(buffer) {
    const parts = [];
    for (let at = 0, part; parts.length < 8; ) {
      [part, at] = unpack(buffer, at);
      parts.push(part);
    }
    [this.sizes, this.ys, this.xs, this.shape, this.row, this.col, this.times] = parts;
    const [below, left] = parts[7];
    this.starts = [0];
    for (const size of this.sizes) this.starts.push(this.starts.at(-1) + size);
    // Sorted by row, and given as steps from one row to the next.
    [this.row, this.col] = [Int32Array.from(this.row), Int32Array.from(this.col, (c) => c - left)];
    let row = -below;
    for (let i = 0; i < this.row.length; i++) this.row[i] = row += this.row[i];
  }

  // How many bodies touch an area of one part or several, each a list of rings.
  touching(parts) {
    const boxes = parts.map(([outer]) => {
      const [rows, cols] = [outer.map((p) => p[0]), outer.map((p) => p[1])];
      return [Math.min(...rows), Math.max(...rows), Math.min(...cols), Math.max(...cols)];
    });
    let sum = 0;
    for (let i = 0; i < this.row.length; i++) {
      if (parts.some((rings, k) => this.#touches(i, rings, boxes[k]))) sum += this.times[i];
    }
    return sum;
  }

  #touches(i, rings, [top, bottom, left, right]) {
    const STEPS = 1 << 20;
    const corners = [];
    let [r0, r1, c0, c1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let k = this.starts[this.shape[i]]; k < this.starts[this.shape[i] + 1]; k++) {
      const r = this.row[i] + (this.ys[k] + 0.5) / STEPS;
      const c = this.col[i] + (this.xs[k] + 0.5) / STEPS;
      corners.push([r, c]);
      if (r < r0) r0 = r;
      if (r > r1) r1 = r;
      if (c < c0) c0 = c;
      if (c > c1) c1 = c;
    }
    if (r0 > bottom || r1 < top || c0 > right || c1 < left) return false;
    return polygonsMeet(corners, rings);
  }
}

const cross = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);

function sidesCross(a, b, c, d) {
  const [p, q] = [cross(a, b, c), cross(a, b, d)];
  const [s, t] = [cross(c, d, a), cross(c, d, b)];
  return p > 0 !== q > 0 && s > 0 !== t > 0;
}

export function isInside([row, col], rings) {
  let inside = false;
  for (const ring of rings) {
    for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
      const [[ra, ca], [rb, cb]] = [ring[i], ring[j]];
      if (ra > row !== rb > row && col < ca + ((row - ra) / (rb - ra)) * (cb - ca)) inside = !inside;
    }
  }
  return inside;
}

// Whether a convex body meets a polygon with holes: sides cross, or one is inside the other.
export function polygonsMeet(body, rings) {
  if (isInside(body[0], rings)) return true;
  if (rings.some((ring) => ring.length && isInside(ring[0], [body])) && isInside(rings[0][0], [body]))
    return true;
  for (let i = 0; i < body.length; i++) {
    const [a, b] = [body[i], body[(i + 1) % body.length]];
    for (const ring of rings) {
      for (let k = 0; k < ring.length; k++) {
        if (sidesCross(a, b, ring[k], ring[(k + 1) % ring.length])) return true;
      }
    }
  }
  return false;
}

// What blocks of one size are like: how many may be empty, and how many are within 50 %.
export function blockFigures({ values }, { low, high }) {
  const r = new Float32Array(values.length);
  let empty = 0;
  let within = 0;
  for (let i = 0; i < values.length; i++) {
    r[i] = (high[i] - low[i]) / 2 / Math.max(values[i], 1);
    if (low[i] <= 0) empty += 1;
    if (r[i] <= 0.5) within += 1;
  }
  return { r, empty: empty / values.length, within: within / values.length };
}
