// What can be taken away: the release and its exports from the server, saved queries and the cells
// from the page itself. A file that is not private says so in its name.

import { asCSV, asGeoJSON, keep } from "./files.js";
import { element } from "./words.js";
import { rectangleQuery } from "./state.js";

const FROM_SERVER = [["release", "The release file (Parquet)"], ["html", "This map as one HTML file"], ["gpkg", "GeoPackage, with a style for QGIS"], ["parquet", "GeoParquet"], ["geojson", "GeoJSON"], ["tif", "GeoTIFF"]];

export function showDownloads(host, page) {
  const { transport, release, answers, state } = page;
  const { said } = release;
  const stem = `${said.name.replace(/[^\w-]+/g, "-")}${said.private ? "" : "-NOT-PRIVATE"}`;
  const kinds = FROM_SERVER.filter(([kind]) => (said.grid || kind !== "tif") && (said.crs || kind !== "geojson"));
  for (const [kind, words] of kinds) {
    const href = transport.download(page.id, kind);
    if (href) host.append(element("a", { href, download: "" }, words));
  }
  const keepSaved = (kind) => {
    const { saved } = state.values;
    if (kind === "csv") keep(`${stem}-queries.csv`, asCSV(saved, answers, said), "text/csv");
    else keep(`${stem}-queries.geojson`, asGeoJSON(saved, answers, said), "application/geo+json");
  };
  const keepCells = () => {
    const all = release.counts ? page.cells.all().map((answer) => ({ ...rectangleQuery(answer.cells), answer })) : page.cells.all().map(([, answer, query]) => ({ ...query, answer }));
    const lookup = { now: (query) => query.answer };
    keep(`${stem}-cells.csv`, asCSV(all, lookup, said), "text/csv");
  };
  host.append(element("button", { type: "button", onclick: keepCells }, "Cells as shown (CSV)"));
  host.append(element("button", { type: "button", onclick: () => keep(`${stem}-statement.txt`, said.statement, "text/plain") }, "The privacy statement"));
  return { keepSaved };
}
