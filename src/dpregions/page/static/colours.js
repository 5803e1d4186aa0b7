// Colours of the map, honest by construction: a count's colour fades into the paper by its noise.

const rgb = (hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
const ramp = (text) => text.split(" ").map(rgb);

// ColorBrewer's YlGnBu and BrBG.
const YLGNBU = "ffffd9 edf8b1 c7e9b4 7fcdbb 41b6c4 1d91c0 225ea8 253494 081d58";
const BRBG = "543005 8c510a bf812d dfc27d f5f5f5 80cdc1 35978f 01665e 003c30";
const LIGHT_PAPER = "f6f5f1";
const DARK_PAPER = "11161c";

export function palette(dark, difference) {
  const paper = rgb(dark ? DARK_PAPER : LIGHT_PAPER);
  if (difference) {
    const found = ramp(BRBG);
    if (dark) found.forEach((colour, i) => (found[i] = colour.map((v) => 0.25 + 0.75 * v)));
    found[4] = paper;
    return { ramp: found, paper };
  }
  const found = ramp(YLGNBU);
  // In the dark, few is dark: the ramp is turned round and starts a little above the paper.
  return { ramp: dark ? [rgb("16202a"), ...found.slice(1, 8).reverse(), found[0]] : found, paper };
}

export const faded = (r) => 1 / (1 + r * r);

// The colour of a value: t runs from 0 to 1, or from -1 to 1 of a difference.
export function colourOf({ ramp: colours, paper }, t, weight = 1, difference = false) {
  const at = (difference ? (t + 1) / 2 : t) * (colours.length - 1);
  const low = Math.min(Math.max(Math.floor(at), 0), colours.length - 2);
  const part = Math.min(Math.max(at - low, 0), 1);
  return colours[low].map((v, k) => {
    const whole = v + (colours[low + 1][k] - v) * part;
    return whole * weight + paper[k] * (1 - weight);
  });
}

export const scaled = (value, domain) => Math.sign(value) * Math.sqrt(Math.min(Math.abs(value) / domain, 1));
export const css = (colour) => `rgb(${colour.map((v) => Math.round(v * 255)).join(" ")})`;
