"""The same city of regions in every format, and what is counted of it."""

from __future__ import annotations

import zipfile

import duckdb
import geopandas
import pandas as pd
import pyarrow as pa
import pytest

import dpregions as dpr
from dpregions import EulerHistogram, synthetic
from dpregions.errors import (
    InputError,
)
from dpregions.releases.make import release_with
from support.watched_noise import Untouched

GRID = synthetic.grid(cell_size="2km")


def city() -> geopandas.GeoDataFrame:
    """300 users, some with several rows, some rows without a user, some without a region."""
    frame = synthetic.regions(300)
    again = synthetic.regions(60, seed=1)
    nobody = synthetic.regions(5, seed=2).astype({"user_id": "Int64"})
    nobody["user_id"] = pd.NA
    parts = [frame.astype({"user_id": "Int64"}), again.astype({"user_id": "Int64"}), nobody]
    whole = pd.concat(parts, ignore_index=True)
    whole["user_id"] = whole["user_id"].astype("Int64")
    whole.loc[[7, 70, 170], "geometry"] = None
    whole["note"] = "not needed"
    return whole


CITY = city()


def degrees() -> geopandas.GeoDataFrame:
    return CITY.to_crs(4326)


def truth(frame=CITY, **options):
    return EulerHistogram.from_regions(frame, GRID, user_id="user_id", **options)


def counted(stream, user_id="user_id", grid=GRID):
    return EulerHistogram.from_regions(stream, grid, user_id=user_id)


def write_csv(path, frame=CITY):
    table = pd.DataFrame({"user_id": frame["user_id"], "wkt": frame.geometry.to_wkt()})
    table.to_csv(path, index=False)


def write_duckdb(path, frame=CITY):
    described = GRID.crs.to_json().replace("'", "''")
    with duckdb.connect(str(path)) as connection:
        table = pa.table({"user_id": pa.array(frame["user_id"]), "wkb": frame.geometry.to_wkb()})
        connection.register("given", table)
        connection.execute("CREATE TABLE blobs AS SELECT user_id, wkb::BLOB AS wkb FROM given")
        connection.execute(
            f"CREATE TABLE shapes AS SELECT user_id, 'x' AS note, "
            f"ST_SetCRS(ST_GeomFromWKB(wkb::BLOB), '{described}') AS shape FROM given"
        )


def zipped(path, shapefile):
    with zipfile.ZipFile(path, "w") as archive:
        for suffix in (".shp", ".shx", ".dbf", ".prj"):
            archive.write(shapefile.with_suffix(suffix), f"city{suffix}")


def opened(folder, name, **options):
    return dpr.open_regions(folder / name, **options)


def refused(source, kind=InputError, **options):
    """Return the words in which a source is refused, when it is opened or read: before noise."""
    terms = {"epsilon": 1, "max_diameter": "2km"}
    with pytest.raises(kind) as caught:
        release_with(Untouched(), dpr.open_regions(source, **options), GRID, **terms)
    assert caught.value.__cause__ is None
    return str(caught.value)
