"""The picture of a plan: error in busy places by epsilon, one panel for each size of query.

Draws predictions; it never sees data.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpregions.atomic_files import replacing
from dpregions.lengths import shown_percent
from dpregions.plots import blank_figure, need_plot, write

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from dpregions.planning.expected import Expectation, Plan

_INK, _QUIET = "#22303c", "#7a8791"
_METHODS = {"footprint": ("#0072b2", "-", "o"), "paper": ("#d55e00", "--", "s")}
"""Colour (Okabe and Ito's, safe for the colour-blind), line and marker of each method."""

_COLUMNS = 4


def draw_plan(plan: Plan, path: Path) -> None:
    """Save a picture of the errors in busy places, with bands that hold eight of ten rehearsals.

    Parameters
    ----------
    plan : Plan
    path : pathlib.Path
        The picture to write, PNG, SVG or PDF by its suffix.
    """
    need_plot(path)
    figure = plan_figure(plan)
    with replacing(path) as part:
        figure.savefig(part, dpi=130)


def plan_figure(plan: Plan) -> Figure:
    """Return that picture, a panel for each size of query."""
    queries = list(dict.fromkeys(row.query for row in plan.rows))
    cells = sorted({row.cell_size for row in plan.rows})
    shown = [row for row in plan.at("busy") if not math.isnan(row.error)]
    heights = [math.log10(end) for row in shown for end in (row.low, row.high)]
    gap = 0.045 * (max(heights, default=0.0) - min(heights, default=0.0))
    n_rows, n_cols = _laid_out(len(queries))
    size = (3.5 * n_cols + 1.1, 3.6 * n_rows + 0.9)
    figure = blank_figure(figsize=size, layout="constrained")
    panels = figure.subplots(n_rows, n_cols, sharex=True, sharey=True, squeeze=False)
    for axes, query in zip(panels.flat, queries, strict=False):
        rows = [row for row in shown if row.query == query]
        axes.set_title(f"{query} queries", color=_INK, loc="left", fontsize=11)
        _label_ends(axes, _draw_curves(axes, rows, cells), gap)
        _frame(axes, plan)
    for advice in plan.recommendations[:1]:
        _draw_target(panels.flat, advice.target, min(row.epsilon for row in plan.rows))
    for axes in panels.flat[len(queries) :]:
        axes.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel("median error in busy places")
    for axes in panels.flat[max(len(queries) - n_cols, 0) : len(queries)]:  # none is below them
        axes.set_xlabel("epsilon")
        axes.tick_params(labelbottom=True)
    figure.suptitle(
        f"{plan.n_regions:,} regions up to {plan.max_diameter} across in {plan.area}:\n"
        f"errors to expect in busy places, by size of cell",
        color=_INK,
        fontsize=12,
        x=0.01,
        ha="left",
    )
    enlarged = any(row.note and not math.isnan(row.error) for row in plan.rows)
    figure.supxlabel(
        f"Bands hold eight of ten rehearsals; {plan.rehearsed_on}."
        + (" * Queries enlarged to whole cells." if enlarged else ""),
        color=_QUIET,
        fontsize=8.5,
        x=0.01,
        ha="left",
    )
    _legend(figure, plan)
    return figure


def _laid_out(n_panels: int) -> tuple[int, int]:
    """Return rows and columns of panels, the rows as full as they can be."""
    n_rows = -(-n_panels // _COLUMNS)
    return n_rows, -(-n_panels // n_rows)


_End = tuple[float, float, str, str]
"""Where a curve ends, what to write there, in which colour."""


def _draw_curves(axes: Any, rows: list[Expectation], cells: list[float]) -> list[_End]:
    """Draw a curve for each method and cell size; return their right ends."""
    ends = []
    for method, (colour, line, marker) in _METHODS.items():
        for cell in cells:
            points = [row for row in rows if row.method == method and row.cell_size == cell]
            if not points:
                continue
            # Finer cells are paler, alike in all panels.
            strength = (
                1.0 if len(cells) == 1 else 0.45 + 0.55 * cells.index(cell) / (len(cells) - 1)
            )
            x = [row.epsilon for row in points]
            y = [row.error for row in points]
            low, high = ([getattr(row, end) for row in points] for end in ("low", "high"))
            axes.fill_between(x, low, high, color=colour, alpha=0.13 * strength, lw=0)
            axes.plot(x, y, line, color=colour, alpha=strength, marker=marker, ms=4.5, lw=1.8)
            mark = "*" if points[-1].note else ""
            ends.append((x[-1], y[-1], points[-1].cell + mark, colour))
    return ends


def _label_ends(axes: Any, ends: list[_End], gap: float) -> None:
    """Write each curve's cell size at its right end, a gap (in decades) from the next one's."""
    placed: list[float] = []
    for x, y, text, colour in sorted(ends, key=lambda end: end[1]):
        at = max(math.log10(y), placed[-1] + gap) if placed else math.log10(y)
        placed.append(at)
        style = {"color": colour, "va": "center", "annotation_clip": False}
        write(axes, text, (x, 10**at), (7, 0), **style)


def _frame(axes: Any, plan: Plan) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    epsilons = sorted({row.epsilon for row in plan.rows})
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", which="minor", length=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: shown_percent(y)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(epsilons[0] / 1.15, epsilons[-1] * (1.9 if len(epsilons) > 1 else 1.3))
    axes.grid(alpha=0.25, which="major")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_target(panels: Any, target: float, epsilon: float) -> None:
    """Draw the target across all panels, and name it in the first."""
    for axes in panels:
        axes.axhline(target, color=_QUIET, lw=1, ls=":")
    text = f"target {shown_percent(target)}"
    write(panels[0], text, (epsilon, target), (-4, -10), color=_INK)


def _legend(figure: Any, plan: Plan) -> None:
    from matplotlib.lines import Line2D

    used = [m for m in _METHODS if any(row.method == m for row in plan.rows)]
    handles = [
        Line2D([], [], color=_METHODS[m][0], ls=_METHODS[m][1], marker=_METHODS[m][2], label=m)
        for m in used
    ]
    figure.legend(handles=handles, loc="outside upper right", frameon=False, ncols=len(handles))
