"""The folder of a sweep, written and read like the lake: no file is ever half-written.

cells/<key>.parquet            one cell: a row for each measure and k; written last, so a cell is
done if it exists
cells/<key>.values.parquet     its values query by query
samples/<digest>.json          the ids of the tools of a sample
vectors/<digest>/*.parquet     vectors of queries
sweep.parquet, values.parquet, sweep.json, sweep.html, over-tools.svg, over-k.svg     the results"""

from pathlib import Path
from typing import TYPE_CHECKING

from tasks.lake.files import Lake

if TYPE_CHECKING:
    import polars as pl


class SweepFolder(Lake):
    """The folder of a sweep."""

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder)

    def replace(self, path: str, frame: "pl.DataFrame") -> None:
        """Write a table as a Parquet file, also where there is another one."""
        self.delete(path)
        self.write(path, frame)
