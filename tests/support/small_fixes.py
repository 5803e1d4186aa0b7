"""Small tables of GPS fixes, and how long a region of them is."""

import geopandas
import numpy as np
import pandas as pd
import shapely
from scipy.spatial.distance import pdist

UTM = "EPSG:32632"
ORIGIN = np.array([500_000.0, 5_372_000.0])


def in_metres(xy, user=0):
    """Return points in the working CRS itself, so that tests know their coordinates."""
    xy = np.asarray(xy, float).reshape(-1, 2)
    points = shapely.points(xy + ORIGIN)
    return geopandas.GeoDataFrame({"user_id": user}, geometry=points, crs=UTM, index=range(len(xy)))


def diameter(region):
    corners = shapely.get_coordinates(region)
    return pdist(corners).max() if len(corners) > 1 else 0.0


def table(*users):
    """Return (name, [(lon, lat), ...]) pairs as a table of fixes."""
    rows = [(name, *fix) for name, fixes in users for fix in fixes]
    return pd.DataFrame(rows, columns=["user_id", "lon", "lat"])
