"""The words that public arguments take, each list spelled here alone.

Imports nothing, so that the command line can offer them before anything heavy is loaded. The
module that gives the words their meaning passes them on under the same name.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Neighbours: TypeAlias = Literal["add-remove", "replace-one"]
Unit: TypeAlias = Literal["user", "record", "trajectory"]
Method: TypeAlias = Literal["footprint", "paper"]
Oversize: TypeAlias = Literal["shrink", "drop"]
FixUnit: TypeAlias = Literal["user", "trajectory"]
TraceFormat: TypeAlias = Literal["auto", "tdrive", "geolife", "cabspotting", "table"]
Kind: TypeAlias = Literal["faces", "edges", "vertices"]
What: TypeAlias = Literal["components", "faces", "edges", "vertices", "regions"]
