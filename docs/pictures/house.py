"""The map of the house: which package imports which, drawn from the imports in the code.

``python -m docs.pictures.house`` (``make map``) draws `docs/images/architecture.svg` and prints
which names packages import from each other. It fails where an import goes up, where modules import
each other in a circle, also inside functions, and where more names cross than `MOST_NAMES`. The
order of the layers is the contract in `pyproject.toml`; nothing here repeats it.
"""

from __future__ import annotations

import ast
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from html import escape
from operator import attrgetter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "dpregions"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

MOST_NAMES = 90
"""The most names that may cross between packages at run time."""

FACE = "dpregions"
"""The public face, `dpregions/__init__.py`: above every layer, so nothing inside imports it."""


@dataclass(frozen=True, order=True)
class Import:
    """One name that one module imports from another; `name` is "" for the module itself."""

    importer: str
    module: str
    name: str
    for_types: bool
    """Whether it is under TYPE_CHECKING: not there at run time."""

    @property
    def crosses(self) -> bool:
        """Whether it leaves its package; the public face is not one."""
        return self.importer != FACE and package_of(self.importer) != package_of(self.module)

    @property
    def label(self) -> str:
        """The name as the table shows it, below its package."""
        return ".".join([*self.module.split(".")[2:], self.name or "*"])


@dataclass(frozen=True)
class House:
    """The layers from the top, and every import between modules of the library."""

    layers: list[list[str]]
    docstrings: dict[str, str]
    """The first sentence of each package and module of the root."""
    folders: frozenset[str]
    imports: frozenset[Import]

    @classmethod
    def read(cls, source: Path = SOURCE, settings: Path = ROOT / "pyproject.toml") -> House:
        """Read the code, without importing it, and the contract."""
        contracts = tomllib.loads(settings.read_text(encoding="utf-8"))["tool"]["importlinter"]
        (layers,) = (
            contract["layers"]
            for contract in contracts["contracts"]
            if contract["type"] == "layers" and "containers" not in contract
        )
        trees = {
            module_name(path, source): ast.parse(path.read_text(encoding="utf-8"))
            for path in sorted(source.rglob("*.py"))
        }
        opening = {
            package_of(name): (ast.get_docstring(tree) or "").split("\n\n")[0]
            for name, tree in trees.items()
            if name.count(".") == 1
        }
        return cls(
            [[package_of(name) for name in row.split(" | ")] for row in layers],
            opening,
            frozenset(path.parent.name for path in source.glob("*/__init__.py")),
            frozenset(
                found for name, tree in trees.items() for found in imports_of(name, tree, trees)
            ),
        )

    @property
    def rooms(self) -> list[str]:
        """The packages, and the modules of the root among them, from the top."""
        lowest = max(i for i, row in enumerate(self.layers) if self.folders.intersection(row))
        return [name for row in self.layers[: lowest + 1] for name in row]

    @property
    def ground(self) -> list[str]:
        """The modules of the root below every package, which all of them may use."""
        return [name for row in self.layers for name in row if name not in self.rooms]

    @cached_property
    def _crossing(self) -> dict[str, list[Import]]:
        """What others import from each package."""
        found: dict[str, list[Import]] = {}
        for one in filter(attrgetter("crosses"), self.imports):
            found.setdefault(package_of(one.module), []).append(one)
        return found

    def names(self, of: str, by: str | None = None, for_types: bool = False) -> list[str]:
        """Return the names that others (or one other) import from a package, sorted.

        At run time, or those that are imported for types alone.
        """
        met = [
            found
            for found in self._crossing.get(of, [])
            if by in (None, package_of(found.importer))
        ]
        running = {found.label for found in met if not found.for_types}
        return sorted({found.label for found in met} - running if for_types else running)

    def calls(self, name: str) -> set[str]:
        """Return the rooms that a room imports at run time."""
        return {room for room in self.rooms if room != name and self.names(room, by=name)}

    def n_names(self) -> int:
        """Return how many names cross between packages, the folders, at run time."""
        return sum(len(self.names(name)) for name in self.folders)

    def problems(self, most_names: int = MOST_NAMES) -> list[str]:
        """Return a sentence for everything that the map forbids."""
        found = [*self._unplaced(), *self._upward()]
        found += [
            f"modules import each other in a circle: {' -> '.join(circle)}"
            for circle in self.circles()
        ]
        if self.n_names() > most_names:
            found.append(
                f"{self.n_names()} names cross between packages, more than {most_names}: put "
                f"what crosses where it is used, or behind fewer names"
            )
        return found

    def _unplaced(self) -> Iterator[str]:
        placed = {name for row in self.layers for name in row}
        there = set(self.docstrings)
        for name in sorted(placed ^ there):
            where = "is in no layer" if name in there else "is a layer, but does not exist"
            yield f"{name} {where}: see the layers in pyproject.toml"

    def _upward(self) -> Iterator[str]:
        height = {name: -i for i, row in enumerate(self.layers) for name in row} | {FACE: 1}
        for found in sorted(self.imports):
            if not found.crosses or found.for_types:
                continue
            importer, imported = package_of(found.importer), package_of(found.module)
            if height.get(importer, 0) <= height.get(imported, -len(self.layers)):
                yield f"{found.importer} imports {found.module}, which is not below it"

    def circles(self) -> Iterator[list[str]]:
        """Yield circles of modules, each of which imports the next; none has a module of another.

        Imports inside functions count, those for types do not.
        """
        graph: dict[str, list[str]] = {}
        for found in sorted(self.imports):
            if not found.for_types:
                graph.setdefault(found.importer, []).append(found.module)
        while True:
            try:
                return TopologicalSorter(graph).prepare()
            except CycleError as error:
                circle = list(reversed(error.args[1]))
                yield circle
                graph = {name: called for name, called in graph.items() if name not in circle}

    def table(self) -> str:
        """Return the names that packages import from each other, as text."""
        lines = []
        for name in sorted(self.folders, key=lambda name: (-len(self.names(name)), name)):
            for kind, for_types in (("", False), (", for types alone", True)):
                if names := self.names(name, for_types=for_types):
                    lines += _listed(f"{name}/ {len(names)}{kind}", names)
        modules = [name for row in self.layers for name in row if name not in self.folders]
        of_root = [f"{name}.{label}" for name in modules for label in self.names(name)]
        lines += _listed(f"modules of the root {len(of_root)}", of_root)
        lines.append(f"Names imported across packages: {self.n_names()} (at most {MOST_NAMES})")
        return "\n".join(lines)


def module_name(path: Path, source: Path) -> str:
    """Return the dotted name of a file's module."""
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module: str) -> str:
    """Return the folder that a module is in, or its own name in the root."""
    return module.split(".")[1] if "." in module else FACE


def imports_of(importer: str, tree: ast.AST, modules: Iterable[str]) -> Iterator[Import]:
    """Yield what a module imports from the library, wherever in it the import is."""
    for node, for_types in _nodes(tree):
        if isinstance(node, ast.Import):
            inside = (a.name for a in node.names if a.name.split(".")[0] == FACE)
            yield from (Import(importer, name, "", for_types) for name in inside)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise SystemExit(f"{importer}: write imports from {FACE} in full, not by dots")
            if node.module is None or node.module.split(".")[0] != FACE:
                continue
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole not in modules:
                    yield Import(importer, node.module, alias.name, for_types)
                    continue
                # Of a module that is imported whole, the names that are used count.
                for name in _attributes(tree, alias.asname or alias.name) or [""]:
                    yield Import(importer, whole, name, for_types)


def _attributes(tree: ast.AST, of: str) -> set[str]:
    """Return the names that are read of a variable."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == of
    }


def _nodes(tree: ast.AST, for_types: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node below one, and whether it is under ``if TYPE_CHECKING``."""
    checking = isinstance(tree, ast.If) and ast.unparse(tree.test).endswith("TYPE_CHECKING")
    for node in ast.iter_child_nodes(tree):
        within = for_types or (checking and node in tree.body)
        yield node, within
        yield from _nodes(node, within)


def _listed(heading: str, names: list[str]) -> list[str]:
    return [heading, textwrap.indent(textwrap.fill(" ".join(names), 94), "  ")]


# The drawing: packages step down from the upper left to the lower right. Below a package hangs
# its line, and into it from the left comes the line of whoever imports it; where the two cross, a
# dot says how many names. So an import upwards would have its dot above the stairs.
STEP, ROW, LEFT, TOP = 41, 44, 24, 92
WIDTH, BOX, HALF = 1040, 104, 15
INK, QUIET, PALE, DOT, WRONG = "#1f2933", "#52606d", "#9aa5b1", "#b4540a", "#d00000"
CAPTION = (
    "From a package go down to a dot, then right to what it imports. Numbers say how many names.",
    "Stripes are layers. Nothing imports upwards, so no dot is above the stairs.",
)
FOLDER, MODULE, BAND = "#d9e8f5", "#ffffff", "#f4f6f8"


def drawn(house: House) -> str:
    """Return the map as SVG; the same code always gives the same bytes."""
    rooms = house.rooms
    floor = TOP + ROW * len(rooms)
    height = floor + 96
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="{INK}">',
        "<title>The packages of dpregions and what each imports</title>",
        f'<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{PALE}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        _text(LEFT, 32, "Who imports whom", size=19, weight="bold"),
        *(_text(LEFT, 54 + 18 * i, line) for i, line in enumerate(CAPTION)),
    ]
    body += _bands(house)
    body += [line for name in rooms for line in _lines(house, name)]
    body += [line for name in rooms for line in _dots(house, name)]
    body += [line for name in rooms for line in _room(house, name)]
    body += _ground(house, floor + 8)
    return "\n".join([*body, "</svg>", ""])


def _bands(house: House) -> Iterator[str]:
    """Draw every other layer as a band."""
    top = TOP
    for i, row in enumerate(row for row in house.layers if row[0] in house.rooms):
        if i % 2 == 0:
            yield (
                f'<rect x="8" y="{top}" width="{WIDTH - 16}" height="{ROW * len(row)}" '
                f'fill="{BAND}"/>'
            )
        top += ROW * len(row)


def _place(house: House, name: str) -> tuple[int, int]:
    """Return where a package's line hangs, and the height of the middle of its box."""
    i = house.rooms.index(name)
    return LEFT + STEP * i + 14, TOP + ROW * i + ROW // 2


def _lines(house: House, name: str) -> Iterator[str]:
    """Draw a package's line down to the last that it imports, and the line into it."""
    x, y = _place(house, name)
    stroke = f'stroke="{PALE}" stroke-width="1.2" fill="none"'
    if called := [_place(house, room)[1] for room in house.calls(name)]:
        yield f'<path d="M{x} {y + HALF}V{max(called)}" {stroke}/>'
    if callers := [_place(house, room)[0] for room in house.rooms if name in house.calls(room)]:
        yield f'<path d="M{min(callers)} {y}H{x - 15}" {stroke} marker-end="url(#head)"/>'


def _dots(house: House, name: str) -> Iterator[str]:
    """Draw the dots on a package's line."""
    x, _ = _place(house, name)
    for room in sorted(house.calls(name)):
        _, y = _place(house, room)
        upward = house.rooms.index(room) < house.rooms.index(name)
        n = len(house.names(room, by=name))
        yield f'<circle cx="{x}" cy="{y}" r="9.5" fill="{WRONG if upward else DOT}"/>'
        yield _text(x, y + 4, str(n), "#ffffff", size=11, weight="bold", anchor="middle")


def _room(house: House, name: str) -> Iterator[str]:
    """Draw a package's box, and beside it what it says of itself."""
    x, y = _place(house, name)
    is_folder = name in house.folders
    yield (
        f'<rect x="{x - 14}" y="{y - HALF}" width="{BOX}" height="{2 * HALF}" rx="4" '
        f'fill="{FOLDER if is_folder else MODULE}" stroke="{INK}" stroke-width="1"/>'
    )
    label = f"{name}/" if is_folder else f"{name}.py"
    yield _text(x + BOX // 2 - 14, y + 5, label, weight="bold", anchor="middle")
    words = " ".join(house.docstrings[name].replace("`", "").replace("->", "\u2192").split())
    lines = textwrap.wrap(words, (WIDTH - x - BOX) * 10 // 66, max_lines=2, placeholder=" ...")
    for i, line in enumerate(lines):
        yield _text(x + BOX - 4, y + 4 + 14 * i - 7 * (len(lines) - 1), line, QUIET, size=12)


def _ground(house: House, y: int) -> Iterator[str]:
    """Draw the modules that every package may use, as the ground below them."""
    yield (
        f'<rect x="{LEFT}" y="{y}" width="{WIDTH - 2 * LEFT}" height="66" rx="4" '
        f'fill="{BAND}" stroke="{INK}" stroke-width="1"/>'
    )
    yield _text(LEFT + 14, y + 26, "The ground: every package may import these", weight="bold")
    rows = [row for row in house.layers if row[0] in house.ground]
    words = ", below them ".join(", ".join(f"{name}.py" for name in row) for row in rows)
    yield _text(LEFT + 14, y + 48, words)


def _text(
    x: int,
    y: int,
    words: str,
    fill: str = INK,
    *,
    size: int = 13,
    weight: str = "normal",
    anchor: str = "start",
) -> str:
    return (
        f'<text x="{x}" y="{y}" fill="{fill}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(words, quote=False)}</text>'
    )


def main() -> None:
    """Print the names, write the picture; fail where the map forbids something."""
    house = House.read()
    print(house.table())
    PICTURE.write_text(drawn(house), encoding="utf-8")
    if found := house.problems():
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
