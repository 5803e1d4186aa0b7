// Cells of a partition: masts, hexagons, districts. Drawn as they are, each with its own count.

import { colourOf, css, faded, palette, scaled } from "./colours.js";
import { isInside } from "./grid_math.js";
import { labelsQuery } from "./state.js";

export class ShapeCells {
  block = 1;

  constructor(view, release, state) {
    Object.assign(this, { view, release, state });
    this.places = release.features.map((feature) => {
      const { type, coordinates } = feature.geometry;
      return { feature, polygons: type === "Polygon" ? [coordinates] : coordinates };
    });
  }

  async chooseDetail() {}

  #answer({ properties }) {
    const { label, count, low = null, high = null } = properties;
    return { label, count, low, high, exact: true };
  }

  draw(dark) {
    const { features, said } = this.release;
    const colours = palette(dark, false);
    const domain = Math.max(1, ...features.map((f) => f.properties.count));
    const fade = !said.covert && this.state.values.fade;
    let empty = 0;
    const drawn = features.map(({ geometry, properties: { count, low, high } }) => {
      if (low === 0) empty += 1;
      const weight = fade ? faded((high - low) / 2 / Math.max(count, 1)) : 1;
      return { type: "Feature", geometry, properties: { colour: css(colourOf(colours, scaled(count, domain), weight)) } };
    });
    this.view.showShapes?.(drawn);
    const figures = said.covert ? null : { empty: empty / Math.max(features.length, 1) };
    return { block: 1, domain, palette: colours, figures, difference: false };
  }

  at([lon, lat]) {
    const found = this.places.find(({ polygons }) => polygons.some((rings) => isInside([lon, lat], rings)));
    return found ? this.#answer(found.feature) : null;
  }

  all() {
    return this.release.features.map((feature) => {
      const answer = this.#answer(feature);
      return [`cell ${answer.label}`, answer, labelsQuery(answer.label)];
    });
  }
}
