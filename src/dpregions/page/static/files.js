// Files in and out: areas that are dropped on the page, saved queries that are kept. Nothing that is
// dropped goes further than the questions it asks.

import { shapeQuery } from "./state.js";
import { isKnown } from "./words.js";

const MOST_AREAS = 1000;

// GeoJSON, or CSV with columns xmin, ymin, xmax, ymax (west, south, east, north) or a column of WKT.
export async function areasFrom(file) {
  const text = await file.text();
  const queries = /\.csv$/i.test(file.name) ? fromTable(text) : fromGeoJSON(JSON.parse(text));
  if (!queries.length) throw new Error(`${file.name} has no areas: polygons are needed, in longitude and latitude.`);
  if (queries.length > MOST_AREAS) throw new Error(`${file.name} has ${queries.length} areas, more than ${MOST_AREAS}: ask for them by dpregions query.`);
  return queries;
}

export function fromGeoJSON(data) {
  const features = data.type === "FeatureCollection" ? data.features : data.type === "Feature" ? [data] : [{ geometry: data, properties: {} }];
  return features.flatMap(({ geometry, properties }, i) => {
    const parts = partsOf(geometry);
    return parts.length ? [shapeQuery(parts, { how: "area", name: nameOf(properties ?? {}, i) })] : [];
  });
}

function partsOf(geometry) {
  if (geometry?.type === "Polygon") return [geometry.coordinates.map(flat)];
  if (geometry?.type === "MultiPolygon") return geometry.coordinates.map((rings) => rings.map(flat));
  if (geometry?.type === "GeometryCollection") return geometry.geometries.flatMap(partsOf);
  return [];
}

const flat = (ring) => {
  const places = ring.map(([x, y]) => [Number(x), Number(y)]);
  if (places.some(([x, y]) => !(Math.abs(x) <= 360 && Math.abs(y) <= 90))) throw new Error("The areas are not in degrees: give longitude and latitude (WGS 84).");
  return places;
};

function nameOf(properties, i) {
  const key = ["name", "NAME", "Name", "label", "title", "id"].find((k) => properties[k] !== undefined && properties[k] !== null);
  const first = Object.values(properties).find((v) => typeof v === "string" && v);
  return String(key ? properties[key] : first ?? `Area ${i + 1}`).slice(0, 60);
}

function fromTable(text) {
  const [head, ...lines] = rowsOf(text);
  const names = head.map((name) => name.trim().toLowerCase());
  const at = (...options) => names.findIndex((name) => options.includes(name));
  const box = [at("xmin", "west"), at("ymin", "south"), at("xmax", "east"), at("ymax", "north")];
  const [wkt, name] = [at("wkt", "geometry", "geom"), at("name", "label", "id")];
  return lines.flatMap((line, i) => {
    const called = { how: "area", name: (line[name] || `Area ${i + 1}`).slice(0, 60) };
    if (wkt >= 0) return [shapeQuery(partsOf(polygonOfText(line[wkt])), called)];
    const [west, south, east, north] = box.map((k) => Number(line[k]));
    if (!(west < east && south < north)) return [];
    return [shapeQuery([[flat([[west, south], [east, south], [east, north], [west, north]])]], called)];
  });
}

function polygonOfText(text) {
  const kind = /^\s*(MULTI)?POLYGON\s*/i.exec(text ?? "");
  if (!kind) throw new Error(`This is no polygon: ${String(text).slice(0, 40)}`);
  const json = text.slice(kind[0].length).replace(/\(/g, "[").replace(/\)/g, "]").replace(/(-?[\d.]+(?:e[-+]?\d+)?)\s+(-?[\d.]+(?:e[-+]?\d+)?)[^,\]]*/gi, "[$1,$2]");
  return { type: kind[1] ? "MultiPolygon" : "Polygon", coordinates: JSON.parse(json) };
}

function rowsOf(text) {
  const rows = [[]];
  const cell = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g;
  for (let found; (found = cell.exec(text)); ) {
    rows.at(-1).push(found[1] !== undefined ? found[1].replace(/""/g, '"') : found[2]);
    if (found[3] === "") break;
    if (found[3] !== ",") rows.push([]);
  }
  return rows.filter((row) => row.some((v) => v !== ""));
}

const COLUMNS = ["name", "count", "low", "high", "confidence", "exact", "within", "release", "checksum", "epsilon", "unit", "private", "cells"];

function record(query, answer, said) {
  const known = isKnown(answer);
  return {
    name: query.name,
    count: answer.count,
    low: known ? answer.low : null,
    high: known ? answer.high : null,
    confidence: known ? said.confidence : null,
    exact: Boolean(answer.exact),
    within: query.kind === "shape" && answer.asDrawn ? "shape" : "cells",
    release: said.name,
    checksum: said.checksum ? `sha256:${said.checksum}` : null,
    epsilon: said.epsilon,
    unit: said.unit,
    private: said.private,
    cells: query.kind === "cells" ? query.cells.join(" ") : query.kind === "label" ? query.label : null,
  };
}

// No value may be a formula where the table is opened.
const quoted = (v) => {
  if (v === null || v === undefined) return "";
  const text = typeof v === "string" && /^[=+\-@\t\r]/.test(v) ? `'${v}` : String(v);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
};

export function asCSV(queries, answers, said) {
  const lines = queries.map((query) => {
    const row = record(query, answers.now(query), said);
    return COLUMNS.map((name) => quoted(row[name])).join(",");
  });
  return [COLUMNS.join(","), ...lines, ""].join("\n");
}

export function asGeoJSON(queries, answers, said) {
  const features = queries.filter((q) => q.kind !== "label").map((query) => ({ ...answers.feature(query), properties: record(query, answers.now(query), said) }));
  const labelled = queries.filter((q) => q.kind === "label").map((query) => ({ ...answers.release.byLabel.get(String(query.label)), properties: record(query, answers.now(query), said) }));
  return JSON.stringify({ type: "FeatureCollection", features: [...features, ...labelled] });
}

export function keep(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
