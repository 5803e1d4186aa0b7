"""Tables of fixes, written to files."""

import numpy as np
import pandas as pd


def all_of(reader):
    batches = list(reader)
    return pd.concat(batches, ignore_index=True) if batches else pd.DataFrame()


def fixes_table(n_users=7, n=40, seed=0, sort=True):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "user_id": rng.integers(0, n_users, n),
            "t": pd.Timestamp("2008-05-01") + pd.to_timedelta(rng.integers(0, 9999, n), "s"),
            "lon": rng.normal(9, 0.01, n),
            "lat": rng.normal(48.5, 0.01, n),
        }
    )
    table["t"] = table["t"].astype("datetime64[us]")
    order = ["user_id", "t"] if sort else ["t"]
    return table.sort_values(order, ignore_index=True)


def write(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False, row_group_size=11)
    else:
        table.to_csv(path, index=False)
    return path
