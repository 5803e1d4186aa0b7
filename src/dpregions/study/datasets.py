"""The paper's three data sets and a made-up city: where they lie, what one region stands for.

Owns the data folder, the public choices of each data set (area, k, unit) and the regions kept
in a study's folder. Fixes and regions are secret: what is kept is for its owner's eyes, and no
message holds anything that was counted in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions import synthetic
from dpregions.errors import Argument, InputError
from dpregions.extraction.fixes import regions_from_fixes
from dpregions.geometry.grid import Grid
from dpregions.planning.exact_data import ExactData

if TYPE_CHECKING:
    import geopandas
    import pandas as pd

    from dpregions.choices import FixUnit

MAX_DIAMETER = "2km"
COLUMNS = ("user_id", "t", "lon", "lat")


@dataclass(frozen=True)
class DataSet:
    """A data set of the study and its public choices, which no data were asked for."""

    name: str
    title: str
    centre: tuple[float, float]
    side: int
    """Of the square area, in metres."""
    k: int
    """How many fixes make a region: about eight hours of them."""
    n: int
    """Cells a side in the paper's main setting."""
    unit: FixUnit = "user"
    gap: str | None = None
    source: str = ""
    """Who publishes the fixes."""
    n_users: int = 0
    """Of a made-up city."""

    @property
    def made_up(self) -> bool:
        """Whether it needs no data folder and has no secrets."""
        return self.n_users > 0

    def grid(self, n: int) -> Grid:
        """Return the area cut into n x n cells."""
        cell: Any = Fraction(self.side, n)  # in floats, A/d = 30 would have k = 4 and not 3
        return Grid.around(*self.centre, side=self.side, cell_size=cell)

    def file(self, folder: Path | None) -> Path:
        """Return the file of fixes in a data folder."""
        if folder is None:
            raise InputError(
                f"the data set {self.name} needs a folder of data: give ",
                Argument("folder", "FOLDER"),
            )
        return folder / f"{self.name}.parquet"

    def fixes(self, folder: Path | None) -> pd.DataFrame:
        """Read the fixes, or make them up."""
        import pandas as pd

        if self.made_up:
            return synthetic.fixes(self.n_users)
        return pd.read_parquet(self.file(folder), columns=list(COLUMNS))

    def regions_of(self, fixes: pd.DataFrame) -> geopandas.GeoDataFrame:
        """Turn fixes into regions with this data set's choices."""
        return regions_from_fixes(
            fixes,
            k=self.k,
            max_diameter=MAX_DIAMETER,
            crs=self.grid(self.n).crs,
            unit=self.unit,
            gap=self.gap,
        )


TDRIVE = DataSet(
    "tdrive",
    "T-Drive",
    (116.40, 39.91),
    20_000,
    k=163,
    n=20,
    source="T-Drive trajectories, Microsoft Research",
)
GEOLIFE = DataSet(
    "geolife",
    "GeoLife",
    (116.40, 39.91),
    20_000,
    k=2880,
    n=20,
    unit="trajectory",
    gap="20min",
    source="GeoLife GPS Trajectories 1.3, Microsoft Research, one fix in 10 seconds",
)
CABSPOTTING = DataSet(
    "cabspotting",
    "Cabspotting",
    (-122.40, 37.792),
    3_200,
    k=480,
    n=4,
    source="CRAWDAD epfl/mobility, the Cabspotting project",
)
SYNTHETIC = DataSet(
    "synthetic", "Made-up city", synthetic.CENTRE, 20_000, k=60, n=20, n_users=2_000
)

DATASETS = {data.name: data for data in (TDRIVE, GEOLIFE, CABSPOTTING, SYNTHETIC)}


def chosen_datasets(names: list[str] | None, folder: Path | None) -> list[DataSet]:
    """Return the data sets asked for: by default all of a data folder, or the made-up city."""
    if names is None:
        real = [data for data in DATASETS.values() if not data.made_up]
        return real if folder is not None else [SYNTHETIC]
    unknown = [name for name in names if name not in DATASETS]
    if unknown or not names:
        raise InputError(
            Argument("datasets"),
            f": {', '.join(unknown) or 'nothing'} is no data set: choose from "
            f"{', '.join(DATASETS)}",
        )
    return [data for name, data in DATASETS.items() if name in names]


def refuse_missing(datasets: list[DataSet], folder: Path | None) -> None:
    """Complain about files that are absent or lack columns, before any work."""
    real = [data for data in datasets if not data.made_up]
    missing = [data for data in real if not data.file(folder).is_file()]
    if missing:
        wanted = "; ".join(f"{data.name}.parquet ({data.source})" for data in missing)
        raise InputError(
            Argument("folder", str(folder)),
            f" lacks {wanted}. Each is a table of GPS fixes with the columns "
            f"{', '.join(COLUMNS)} (WGS 84), made of what the data's owners publish. Leave a data "
            f"set out with ",
            *(Argument("datasets"), ", or study the made-up city with "),
            Argument("datasets", "synthetic"),
        )
    for data in real:
        _refuse_columns(data.file(folder))


def _refuse_columns(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_schema(path).names
    except pa.ArrowInvalid:
        raise InputError(f"{path} is no Parquet file: write it anew", argument="folder") from None
    lacking = [name for name in COLUMNS if name not in found]
    if lacking:
        raise InputError(
            f"{path} has no column {', '.join(lacking)}: a row is one fix with the columns "
            f"{', '.join(COLUMNS)}",
            argument="folder",
        )


@dataclass(frozen=True)
class Setting:
    """A data set on n x n cells at an epsilon."""

    data: DataSet
    n: int
    epsilon: float = 1.0

    @property
    def key(self) -> str:
        """A name for files and for seeds."""
        return f"{self.data.name}-n{self.n}-epsilon{self.epsilon:g}"

    @property
    def cell_km(self) -> float:
        """Side of a cell."""
        return self.data.side / self.n / 1000

    @cached_property
    def cells_spanned(self) -> int:
        """The bound on regions in whole cells: k = ceil(B / d)."""
        return self.data.grid(self.n).cells_spanned(MAX_DIAMETER)

    def exact(self, regions: Any) -> ExactData:
        """Read the data set's regions as a release on these cells would."""
        by_user = "user_id" if self.data.unit == "user" else None
        return ExactData.of(regions, self.data.grid(self.n), MAX_DIAMETER, user_id=by_user)

    @property
    def sensitivity(self) -> int:
        """Of the Euler histogram when one region is added or removed."""
        grid = self.data.grid(self.n)
        return grid.most_touched(grid.bound(MAX_DIAMETER, "shrink"))


def lacks_regions(data: DataSet, kept: Path) -> bool:
    """Say whether a data set's regions are yet to be extracted."""
    return not data.made_up and not (kept / f"{data.name}.parquet").exists()


def keep_regions(data: DataSet, folder: Path | None, kept: Path) -> None:
    """Extract a data set's regions into a folder for its owner's eyes."""
    from dpregions.io.region_files import save_regions

    kept.mkdir(mode=0o700, exist_ok=True)
    save_regions(data.regions_of(data.fixes(folder)), kept / f"{data.name}.parquet")


@lru_cache(maxsize=2)
def exact_data(setting: Setting, kept: Path) -> ExactData:
    """Return the exact data of a setting, from the regions kept."""
    import geopandas

    data = setting.data
    if data.made_up:
        regions = synthetic.regions(data.n_users)
    else:
        regions = geopandas.read_parquet(kept / f"{data.name}.parquet")
    return setting.exact(regions)
