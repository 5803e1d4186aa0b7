"""Files of regions: GeoParquet that says what one region stands for. As secret as the regions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpregions.atomic_files import SECRET, replacing
from dpregions.intake.units import UNIT_ATTRIBUTE

if TYPE_CHECKING:
    import geopandas


def save_regions(regions: geopandas.GeoDataFrame, path: Path, *, fresh: bool = False) -> None:
    """Write regions as GeoParquet, with their unit, whole or not at all.

    The file is for its owner's eyes (mode 600). The unit is in the schema's metadata, so that
    it lasts where a tool drops what pandas knows about a frame. With `fresh`, a file that is there
    is not replaced: FileExistsError.
    """
    import pyarrow.parquet as pq

    with replacing(path, mode=SECRET, fresh=fresh) as part:
        regions.to_parquet(part, index=False)
        table = pq.read_table(part)
        unit = str(regions.attrs.get(UNIT_ATTRIBUTE, "user"))
        metadata = {**(table.schema.metadata or {}), UNIT_ATTRIBUTE.encode(): unit.encode()}
        pq.write_table(table.replace_schema_metadata(metadata), part, compression="zstd")


def load_regions(path: Path) -> geopandas.GeoDataFrame:
    """Read a GeoParquet file of regions; ``attrs["dpregions_unit"]`` says what one stands for.

    A file that does not say holds one region a user: the stronger promise.
    """
    import geopandas
    import pyarrow.parquet as pq

    regions = geopandas.read_parquet(path)
    stated = (pq.read_schema(path).metadata or {}).get(UNIT_ATTRIBUTE.encode())
    regions.attrs[UNIT_ATTRIBUTE] = stated.decode() if stated else "user"
    return regions
