// The cells on the map: which detail, which colours, and what is known of each block.

import { palette } from "./colours.js";
import { blockFigures, unpackEnds } from "./grid_math.js";

const ENOUGH = 0.5; // of blocks must be within 50 %
const FINEST = 4; // pixels of a block's side, at least

export class Cells {
  constructor(view, release, transport, state) {
    Object.assign(this, { view, release, transport, state });
    this.byBlock = new Map(); // block -> { data, ends, figures }
    this.noiseDetail = 1;
  }

  // Counts of blocks; their ends come later, if at all.
  data(block) {
    if (!this.byBlock.has(block)) this.byBlock.set(block, { data: this.release.counts.blocks(block) });
    return this.byBlock.get(block);
  }

  async ends(block) {
    const held = this.data(block);
    if (this.release.said.covert) return held;
    held.asked ??= this.transport.ends(this.release.id, block).then((buffer) => {
      if (!buffer) return;
      held.ends = unpackEnds(buffer, (i) => held.data.values[i]);
      held.figures = blockFigures(held.data, held.ends);
      this.release.ends.set(block, held.ends);
    });
    try {
      await held.asked;
    } catch (trouble) {
      held.asked = undefined; // it may be asked again
      throw trouble;
    }
    return held;
  }

  // The finest detail at which half the blocks are within 50 %, from coarse to fine.
  async chooseDetail() {
    const { blocks, covert } = this.release.said;
    if (covert) return;
    this.noiseDetail = blocks.at(-1);
    for (const block of [...blocks].reverse()) {
      const { figures } = await this.ends(block);
      if (!figures || figures.within < ENOUGH) break;
      this.noiseDetail = block;
    }
  }

  get block() {
    const { blocks } = this.release.said;
    const { detail } = this.state.values;
    if (blocks.includes(detail)) return detail;
    const side = this.view.cellPixels();
    const visible = blocks.find((block) => block * side >= FINEST) ?? blocks.at(-1);
    return Math.max(this.noiseDetail, visible);
  }

  look(dark, difference) {
    const found = palette(dark, difference);
    return { ...found, ink: dark ? [0.9, 0.93, 0.96] : [0.1, 0.14, 0.19] };
  }

  // Draw the blocks of the detail at hand; return what the legend says.
  draw(dark) {
    const { block } = this;
    const { data, ends, figures } = this.data(block);
    const { fade } = this.state.values;
    const colours = this.look(dark, false);
    let domain = 1;
    for (const v of data.values) if (v > domain) domain = v;
    const look = { ...colours, domain, fade: fade && Boolean(figures), marks: fade, difference: false };
    this.view.layer.show(data, figures?.r, ends && ((i) => ends.low[i] <= 0), { ...look, clear: this.view.hasBasemap });
    return { block, domain, palette: colours, figures, difference: false };
  }

  // The block at a place in rows and columns, with its answer; null outside.
  at(row, col) {
    const { rows, cols } = this.release.counts;
    if (!(row >= 0 && col >= 0 && row < rows && col < cols)) return null;
    const { block } = this;
    const [r, c] = [Math.floor(row / block), Math.floor(col / block)];
    return this.answer(block, r, c);
  }

  answer(block, r, c) {
    const { data, ends } = this.data(block);
    const i = r * data.cols + c;
    const cells = [r * block, Math.min((r + 1) * block, this.release.counts.rows) - 1, c * block, Math.min((c + 1) * block, this.release.counts.cols) - 1];
    return { cells, count: data.values[i], low: ends?.low[i], high: ends?.high[i], exact: true };
  }

  all() {
    const { block } = this;
    const { data } = this.data(block);
    return Array.from(data.values, (_, i) => this.answer(block, Math.floor(i / data.cols), i % data.cols));
  }
}
