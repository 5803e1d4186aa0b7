"""Fixtures that several files here share."""

from __future__ import annotations

import gzip

import pytest

from support.city_files import CITY, degrees, write_csv, write_duckdb, zipped


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the city in every format."""
    folder = tmp_path_factory.mktemp("city")
    CITY.to_parquet(folder / "city.parquet", row_group_size=64)
    CITY.to_file(folder / "city.gpkg", layer="homes")
    CITY.to_file(folder / "city.fgb", SPATIAL_INDEX="NO")
    degrees().to_file(folder / "city.geojson", COORDINATE_PRECISION=15)
    CITY.to_file(folder / "city.shp")
    zipped(folder / "city.zip", folder / "city.shp")
    write_csv(folder / "city.csv")
    with gzip.open(folder / "city.csv.gz", "wb") as file:
        file.write((folder / "city.csv").read_bytes())
    write_duckdb(folder / "city.duckdb")
    return folder
