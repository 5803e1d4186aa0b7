"""A study's output folder: whose it is, with which settings, and what is finished in it.

Every file is written whole and for its owner's eyes, since figures of exact data are no
release. A folder that is not a study's, or a study's with other settings, is left as it is.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions._version import __version__
from dpregions.atomic_files import SECRET, replacing
from dpregions.errors import Argument, InputError
from dpregions.planning.exact_data import ExactData
from dpregions.study.datasets import DATASETS, MAX_DIAMETER, DataSet
from dpregions.study.harness import PLACEMENTS

if TYPE_CHECKING:
    import pandas as pd

    from dpregions.study.experiments.base import Unit

MANIFEST = "study.json"
MADE_BY = "dpregions study"


@dataclass
class StudyFolder:
    """The folder of one study. `claim` makes one; nothing is written before that."""

    path: Path
    settings: dict[str, Any]
    data: dict[str, Any] = field(default_factory=dict)
    """What each data set was when it was first read."""
    finished: list[tuple[str, str]] = field(default_factory=list)
    """Experiments and data sets that are done."""

    @property
    def kept(self) -> Path:
        """Folder of regions, and of the fixes of the users who are shown."""
        return self.path / "secret_regions"

    @classmethod
    def claim(
        cls, path: Path, settings: dict[str, Any], datasets: list[DataSet], folder: Path | None
    ) -> StudyFolder:
        """Return the study's folder at a path, made now or by an earlier run of this study."""
        claimed = cls(path, settings)
        nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
        if not nearest.is_dir():
            raise InputError(_out(path), f": {nearest} is a file: give a folder")
        if path.is_dir() and not all(map(_begun_manifest, path.iterdir())):
            claimed = _earlier(path, settings)
        claimed._refuse_other_data(datasets, folder)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        claimed.save()  # first, as a folder with anything else in it and no manifest is not ours
        (path / "parts").mkdir(mode=0o700, exist_ok=True)
        return claimed

    def _refuse_other_data(self, datasets: list[DataSet], folder: Path | None) -> None:
        """Compare the data sets asked for, and those that the folder holds, with their files."""
        held = (DATASETS[name] for name in self.data if name in DATASETS and folder is not None)
        found = {d.name: d for d in held if not d.made_up and d.file(folder).exists()}
        for data in {**found, **{data.name: data for data in datasets}}.values():
            now = _state(data, folder)
            if self.data.setdefault(data.name, now) != now:
                raise InputError(
                    _out(self.path),
                    f" holds a study of another {data.name}: the data have changed since. Give "
                    f"another folder",
                )

    def save(self) -> None:
        """Write what the folder is."""
        manifest = {
            "made_by": MADE_BY,
            "label": ExactData.label,
            "settings": self.settings,
            "data": self.data,
            "finished": [list(pair) for pair in sorted(self.finished)],
        }
        self.write_text(MANIFEST, json.dumps(manifest, indent=2) + "\n")

    def finish(self, pairs: list[tuple[str, str]]) -> None:
        """Remember experiments and data sets as done."""
        self.finished = sorted({*self.finished, *pairs})
        self.save()

    def has(self, unit: Unit) -> bool:
        """Say whether a unit of work is done."""
        return (self.path / _part(unit)).exists()

    def write_part(self, unit: Unit, rows: pd.DataFrame) -> None:
        """Save the measurements of a unit of work, to the last bit."""
        self._write_csv(_part(unit), rows, "%.17g")

    def read_part(self, unit: Unit) -> pd.DataFrame:
        """Read the measurements of a unit of work."""
        import pandas as pd

        return pd.read_csv(self.path / _part(unit), comment="#")

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """Save a result as CSV, its first line saying what it is."""
        self._write_csv(name, table, "%.6g")

    def write_text(self, name: str, text: str) -> None:
        """Save a text."""
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, content: bytes) -> None:
        """Save a file."""
        with replacing(self.path / name, mode=SECRET) as part:
            part.write_bytes(content)

    def _write_csv(self, name: str, table: pd.DataFrame, floats: str) -> None:
        text = table.to_csv(index=False, float_format=floats, lineterminator="\n")
        self.write_text(name, f"# {ExactData.label}\n{text}")


def _part(unit: Unit) -> str:
    return f"parts/{unit.name}.csv"


def study_settings(methods: tuple[str, ...], repetitions: int, seed: int) -> dict[str, Any]:
    """Return what must be equal for a run to go on with an earlier one."""
    return {
        "dpregions": __version__,
        "sources": _sources(),
        "max_diameter": MAX_DIAMETER,
        "placements": PLACEMENTS,
        "seed": seed,
        "repetitions": repetitions,
        "methods": list(methods),
    }


def _sources(package: Path = Path(__file__).parents[1]) -> str:
    """Return a digest of the package's code: a version's number outlives many changes."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _earlier(path: Path, settings: dict[str, Any]) -> StudyFolder:
    try:
        found = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        ours = found["made_by"] == MADE_BY
        settings_then, data = dict(found["settings"].items()), dict(found["data"].items())
        finished = [(str(name), str(dataset)) for name, dataset in found["finished"]]
        earlier = StudyFolder(path, settings_then, data, finished)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        ours = False
    if not ours:
        raise InputError(
            _out(path), " is not empty and holds no study of ours: give a new or empty folder"
        )
    other = [
        f"{name} {earlier.settings.get(name)} (now {value})"
        for name, value in settings.items()
        if earlier.settings.get(name) != value
    ]
    if other:
        raise InputError(
            _out(path),
            f" holds a study made with {', '.join(other)}: give a new folder, or the same settings "
            f"to go on with it",
        )
    return earlier


def _out(path: Path) -> Argument:
    return Argument("out", str(path))


def _begun_manifest(path: Path) -> bool:
    """Whether it is what a writer of the manifest leaves behind when it is killed."""
    return path.name.startswith(f".{MANIFEST}.")


def _state(data: DataSet, folder: Path | None) -> dict[str, int]:
    """Return what tells a data set from another of the same name."""
    if data.made_up:
        return {"n_users": data.n_users}
    state = data.file(folder).stat()
    return {"bytes": state.st_size, "modified_ns": state.st_mtime_ns}
