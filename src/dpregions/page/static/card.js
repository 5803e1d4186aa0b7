// The privacy card and the table of cells: what the map says, as text.

import { element, number, range, isKnown } from "./words.js";

const MOST = 100;

export function showCard(host, said) {
  const list = element("dl", {});
  for (const { title, text } of said.card) list.append(element("dt", {}, title), element("dd", {}, text));
  host.replaceChildren(
    element("h2", { id: "card-title" }, "Privacy"),
    list,
    element("details", {}, element("summary", {}, "The whole statement"), element("pre", { tabIndex: 0 }, said.statement)),
  );
}

// The busiest cells or blocks as a table; made when it is opened.
export class Table {
  constructor(host, pick) {
    this.pick = pick;
    this.body = element("tbody", {});
    this.caption = element("caption", {});
    this.head = element("tr", {});
    this.details = element(
      "details",
      { ontoggle: () => this.#fill() },
      element("summary", {}, "Cells as a table"),
      element("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Cells as a table" }, element("table", {}, this.caption, element("thead", {}, this.head), this.body)),
    );
    host.replaceChildren(element("h2", { id: "table-title", className: "unseen" }, "Cells as a table"), this.details);
  }

  // `rows` gives [name, answer, query] of all cells.
  show(what, rows) {
    this.what = what;
    this.rows = rows;
    this.#fill();
  }

  #fill() {
    if (!this.details.open || !this.rows) return;
    const sorted = this.rows().sort((a, b) => b[1].count - a[1].count).slice(0, MOST);
    this.caption.textContent = `The ${sorted.length} busiest ${this.what}`;
    this.head.replaceChildren(...["Where", "Count", "Interval"].map((text) => element("th", { scope: "col" }, text)));
    this.body.replaceChildren(
      ...sorted.map(([name, answer, query]) =>
        element(
          "tr",
          {},
          element("th", { scope: "row" }, element("button", { type: "button", className: "plainly", onclick: () => this.pick(query) }, name)),
          element("td", {}, number(answer.count)),
          element("td", {}, isKnown(answer) ? range(answer) : "–"),
        ),
      ),
    );
  }
}
