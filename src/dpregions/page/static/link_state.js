// The page's state in the address, after the #: never sent to a server, never logged. Rectangles are
// rows and columns, exact and short; areas are polylines. Unknown keys are passed over.

import { rectangleQuery, shapeQuery } from "./state.js";

const LONGEST = 2000;
const PRECISION = 1e6;

export function encodePolyline(ring) {
  let [text, x0, y0] = ["", 0, 0];
  const put = (delta) => {
    let v = delta < 0 ? -2 * delta - 1 : 2 * delta;
    for (; v >= 32; v = Math.floor(v / 32)) text += String.fromCharCode((v % 32) + 32 + 63);
    text += String.fromCharCode(v + 63);
  };
  for (const place of ring) {
    const [x, y] = place.map((v) => Math.round(v * PRECISION));
    put(y - y0);
    put(x - x0);
    [x0, y0] = [x, y];
  }
  return text;
}

export function decodePolyline(text) {
  const ring = [];
  let [at, x, y] = [0, 0, 0];
  const take = () => {
    let [value, scale, part] = [0, 1, 32];
    while (part >= 32) {
      if (at >= text.length) throw new RangeError("cut short");
      part = text.charCodeAt(at++) - 63;
      if (!(part >= 0 && part < 64)) throw new RangeError("not a polyline");
      value += (part % 32) * scale;
      scale *= 32;
    }
    return value % 2 ? -(value + 1) / 2 : value / 2;
  };
  while (at < text.length) {
    y += take();
    x += take();
    ring.push([x / PRECISION, y / PRECISION]);
  }
  return ring;
}

const named = (text, { name }) => (name ? `${text}~${encodeURIComponent(name)}` : text);

function encodeQuery(query) {
  if (query.kind === "cells") {
    const [r0, r1, c0, c1] = query.cells;
    return named(`c:${r0}-${r1},${c0}-${c1}`, query);
  }
  if (query.kind === "label") return named(`l:${encodeURIComponent(query.label)}`, query);
  const rings = query.parts.map((part) => part.map((ring) => encodeURIComponent(encodePolyline(ring))).join("!"));
  return named(`p:${rings.join("|")}`, query);
}

function decodeQuery(text, { rows, cols }) {
  const [what, label] = text.split("~");
  const name = label ? decodeURIComponent(label).slice(0, 80) : "";
  const cells = /^c:(\d+)-(\d+),(\d+)-(\d+)$/.exec(what);
  if (cells) {
    const [r0, r1, c0, c1] = cells.slice(1).map(Number);
    return r0 <= r1 && r1 < rows && c0 <= c1 && c1 < cols ? rectangleQuery([r0, r1, c0, c1], null, { name }) : null;
  }
  if (what.startsWith("l:")) return { ...rectangleQuery(null), kind: "label", label: decodeURIComponent(what.slice(2)), name };
  if (!what.startsWith("p:")) return null;
  const parts = what.slice(2).split("|").map((part) => part.split("!").map((ring) => decodePolyline(decodeURIComponent(ring))));
  return parts.every((part) => part.every((ring) => ring.length > 2)) ? shapeQuery(parts, { name }) : null;
}

// The fragment without its #; `tooLong` says that a file is the better way.
export function encodeState(values, place) {
  const parts = [];
  if (place) {
    const { zoom, lon, lat, bearing } = place;
    parts.push(`m=${zoom.toFixed(2)}/${lat.toFixed(5)}/${lon.toFixed(5)}/${Math.round(bearing)}`);
  }
  if (values.detail) parts.push(`d=${values.detail}`);
  if (!values.fade) parts.push("f=0");
  if (values.current) parts.push(`a=${encodeQuery(values.current)}`);
  if (values.saved.length) parts.push(`q=${values.saved.map(encodeQuery).join(";")}`);
  if (values.versus) parts.push(`vs=${values.versus}&with=${values.compare}`);
  const text = parts.join("&");
  return { text, tooLong: text.length > LONGEST };
}

export function decodeState(fragment, grid) {
  const found = {};
  for (const pair of fragment.replace(/^#/, "").split("&")) {
    const at = pair.indexOf("=");
    if (at > 0) found[pair.slice(0, at)] = pair.slice(at + 1);
  }
  const attempt = (read) => {
    try {
      return read();
    } catch {
      return undefined; // a damaged part of a link is passed over, like an unknown one
    }
  };
  const queries = (text) => text.split(";").map((q) => attempt(() => decodeQuery(q, grid))).filter(Boolean);
  const values = {};
  if (found.d > 0) values.detail = Number(found.d);
  if (found.f === "0") values.fade = false;
  if (found.a) values.current = queries(found.a)[0] ?? null;
  if (found.q) values.saved = queries(found.q);
  if (found.vs) Object.assign(values, { versus: found.vs, compare: found.with === "difference" ? "difference" : "swipe" });
  const [zoom, lat, lon, bearing] = (found.m ?? "").split("/").map(Number);
  const place = Number.isFinite(zoom + lat + lon + bearing) && found.m ? { zoom, lat, lon, bearing } : null;
  return { values, place };
}
