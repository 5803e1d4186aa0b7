// Where on Earth: land and a mark. Natural Earth at 1:110 million is off by kilometres, so it is never
// drawn below the cells.

import { shape } from "./overlay.js";

const [WIDTH, HEIGHT] = [144, 72];

export async function showLocator(host, mesh, address) {
  const land = await (await fetch(address)).json();
  const { scale, translate } = land.transform;
  const arcs = land.arcs.map((arc) => {
    let [x, y] = [0, 0];
    return arc.map(([dx, dy]) => {
      x += dx;
      y += dy;
      return [x * scale[0] + translate[0], y * scale[1] + translate[1]];
    });
  });
  const place = ([lon, lat]) => `${(((lon + 180) / 360) * WIDTH).toFixed(1)} ${(((90 - lat) / 180) * HEIGHT).toFixed(1)}`;
  const ring = (indices) => {
    const places = indices.flatMap((i) => (i < 0 ? [...arcs[~i]].reverse() : arcs[i]));
    return `M${places.map(place).join("L")}Z`;
  };
  const [geometry] = land.objects.land.geometries;
  const polygons = geometry.type === "Polygon" ? [geometry.arcs] : geometry.arcs;
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  svg.append(shape("path", { class: "land", d: polygons.flat().map(ring).join("") }));
  const [west, south, east, north] = mesh.bounds;
  const lon = (((((west + east) / 2 + 180) % 360) + 360) % 360) - 180;
  const [x, y] = place([lon, (south + north) / 2]).split(" ");
  svg.append(shape("circle", { class: "ring", cx: x, cy: y, r: 5 }), shape("circle", { class: "here", cx: x, cy: y, r: 2 }));
  host.replaceChildren(svg);
}
