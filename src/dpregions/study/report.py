"""The study's report: one HTML file with everything in it, that opens offline.

Pictures are inside it, it has no scripts and asks the network for nothing. Shows tables and
pictures as they are; every page says that it is no private release.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from dpregions.planning.exact_data import ExactData
from dpregions.study.charts import STYLES, label_of, title_of
from dpregions.study.experiments.base import datasets_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpregions.study.experiments.base import Experiment
    from dpregions.study.statements import Finding


class Section(NamedTuple):
    """An experiment's part of the report."""

    experiment: Experiment
    table: pd.DataFrame
    pictures: dict[str, bytes]


def png(figure: Figure) -> bytes:
    """Return a picture as PNG that says what it is, the same bytes for the same picture."""
    layout: Any = figure.get_layout_engine()
    strip = 0.18 / figure.get_size_inches()[1]  # inches for a line of small text
    layout.set(rect=(0, strip, 1, 1 - strip))
    figure.text(0.995, 0.004, ExactData.label, ha="right", va="bottom", size=6.5, color="#5b6b79")
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=110, facecolor="white", metadata={"Software": None})
    return held.getvalue()


def render(
    sections: Iterable[Section], findings: Iterable[Finding], settings: dict[str, Any]
) -> str:
    """Return the whole report."""
    sections = list(sections)
    contents = [("statements", "The paper's statements beside what was measured")]
    contents += [(s.experiment.name, s.experiment.title) for s in sections]
    links = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in contents)
    body = "".join(_section(section) for section in sections)
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>dpregions study</title><style>{STYLE}</style></head><body>\n"
        f'<p class="label">{escape(ExactData.label)}</p>\n'
        "<h1>Counting users' regions: the study</h1>\n"
        f"<p>{escape(_made(settings))}</p>\n"
        f"<nav><ol>{links}</ol></nav>\n"
        f"{_statements(findings)}{body}"
        f'<p class="label">{escape(ExactData.label)}</p>\n</body></html>\n'
    )


def _made(settings: dict[str, Any]) -> str:
    return (
        f"Made by dpregions {settings['dpregions']} with seed {settings['seed']} and "
        f"{settings['repetitions']} repetitions. Every method has the same epsilon, neighbouring "
        f"data sets differ by one region added or removed, and no method is told how many regions "
        f"there are. Noise is seeded: the same seed gives the same numbers, and protects nobody."
    )


def _section(section: Section) -> str:
    experiment = section.experiment
    pictures = "".join(
        f'<figure><img alt="{escape(stem)}" src="data:image/png;base64,'
        f'{base64.b64encode(content).decode()}"/></figure>\n'
        for stem, content in section.pictures.items()
    )
    words = "".join(
        f"<li>{escape(f'{title_of(dataset)}: {experiment.say(part)}')}</li>"
        for dataset, part in datasets_of(section.table).items()
    )
    return (
        f'<section id="{experiment.name}"><h2>{escape(experiment.title)}</h2>\n'
        f"<p>{escape(experiment.about)}</p>\n{pictures}<ul>{words}</ul>\n"
        f"<details><summary>Table ({experiment.name}.csv)</summary>"
        f"{_html_table(experiment.brief(_for_readers(section.table)))}</details>\n</section>\n"
    )


def _statements(findings: Iterable[Finding]) -> str:
    rows = "".join(
        f'<tr class="{found.verdict.split()[0]}"><td>{escape(found.printed)}</td>'
        f"<td>{escape(found.measured)}</td><td><b>{found.verdict}</b></td>"
        f"<td>{escape(found.why)}</td></tr>"
        for found in findings
    )
    return (
        '<section id="statements"><h2>The paper\'s statements beside what was measured</h2>\n'
        "<p>Fanaeepour and Rubinstein, Differentially-Private Counting of Users' Spatial "
        "Regions.</p>\n"
        "<table><tr><th>printed</th><th>measured here</th><th></th><th>why, and what to note</th>"
        f"</tr>{rows}</table></section>\n"
    )


def _for_readers(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with methods and data sets by their titles, in the order of legends."""
    shown = table.copy()
    for column in ("method", "step"):
        if column in shown:
            # Methods that no picture shows keep their own names.
            order = {key: place for place, key in enumerate(STYLES)}
            shown = shown.sort_values(
                column, key=lambda c: c.map(order).fillna(-1 if column == "step" else 99),
                kind="stable",
            )  # fmt: skip
            shown[column] = shown[column].map(label_of)
    shown["dataset"] = shown["dataset"].map(title_of)
    return shown


def _html_table(table: pd.DataFrame) -> str:
    head = "".join(f"<th>{escape(str(name))}</th>" for name in table.columns)
    rows = (
        "<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>"
        for row in table.itertuples(index=False)
    )
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{float(f'{value:.3g}'):,.12g}"
    return str(value)


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #22303c; max-width: 68rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 3rem; }
.label { background: #fff3cd; border-left: .4rem solid #d55e00; padding: .5rem 1rem;
  font-weight: 600; }
img { max-width: 100%; } figure { margin: 1rem 0; }
table { border-collapse: collapse; font-size: .82rem; } .wide { overflow-x: auto; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #cfd6db;
  vertical-align: top; }
tr.differs b { color: #b34700; } tr.agrees b { color: #00664b; }
summary { cursor: pointer; }
@media print { details > * { display: block; } }
"""
