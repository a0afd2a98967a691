"""The vectors of an encoder as files of the lake: which texts they hold, reading some of them,
merging many small ones.

Every file has the columns `text_digest` and `vector`, and never changes. So what texts a file holds
is read once in a process; after that only the folder is listed, and files that another run added
are found. A file that another run merged into a larger
one may go away between listing and reading: then the folder is listed once more.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.errors import StoreError
from tasks.lake.files import Lake

if TYPE_CHECKING:
    import polars as pl

TIERS = ((1_000, 64), (16_000, 512))
"""Files with fewer texts than the first number are merged when there are more of them than the
second. Few are kept small, so that a nightly run does not write again what others wrote; few
thousands, because each is opened by every run."""
_seen: dict[tuple[str, str], "dict[str, pl.DataFrame]"] = {}
"""The texts of each file, by the lake and the encoder's folder: 64 bytes for each text."""


def known_texts(lake: Lake, fingerprint: str) -> "pl.DataFrame":
    """The digests of all texts whose vectors of that encoder are in the lake, in the column
    `text_digest`; some twice.
    """
    import polars as pl

    held = _held(lake, fingerprint).values()
    return pl.concat([pl.DataFrame(schema={"text_digest": pl.String}), *held])


def vector_pieces(lake: Lake, fingerprint: str, wanted: "pl.Series") -> "Iterator[pl.DataFrame]":
    """The rows (text_digest, vector) of the wanted texts, file by file, one for each text that the
    lake has.

    Raises StoreError if a file cannot be read.
    """
    import polars as pl

    missing = pl.DataFrame({"text_digest": wanted}, schema={"text_digest": pl.String}).unique()
    for again in (False, True):
        for path, texts in _held(lake, fingerprint).items():
            found = texts.join(missing, on="text_digest", how="semi")
            if not found.height:
                continue
            try:
                rows = (
                    lake.read(path)
                    .join(found, on="text_digest", how="semi")
                    .unique("text_digest", maintain_order=True)
                )
            except StoreError:
                if again or lake.exists(path):
                    raise
                continue  # merged into another one meanwhile, which the second listing shows
            missing = missing.join(found, on="text_digest", how="anti")
            yield rows
        if not missing.height:
            return


def merge_small_files(lake: Lake, fingerprint: str) -> None:
    """Merge small files if there are many. Those that were merged are deleted when what replaces
    them is there.
    """
    for texts, most in TIERS:
        held = {
            path: found.height
            for path, found in _held(lake, fingerprint).items()
            if found.height < texts
        }
        if len(held) > most:
            for group in _groups(held, TIERS[-1][0]):
                _merge(lake, fingerprint, group)


def _groups(held: dict[str, int], most: int) -> Iterator[list[str]]:
    """The files in groups of so many texts at most."""
    group, size = list[str](), 0
    for path, texts in held.items():
        if group and size + texts > most:
            yield group
            group, size = [], 0
        group.append(path)
        size += texts
    yield group


def _merge(lake: Lake, fingerprint: str, paths: list[str]) -> None:
    import polars as pl

    merged = pl.concat([lake.read(path) for path in paths]).unique(
        "text_digest", keep="first", maintain_order=True
    )
    merged = merged.sort("text_digest")
    name = f"{lake.vector_folder(fingerprint)}/{digest(fingerprint, merged.get_column('text_digest').to_list())}.parquet"
    lake.write(name, merged)
    for path in paths:
        if path != name:
            lake.delete(path)


def _held(lake: Lake, fingerprint: str) -> "dict[str, pl.DataFrame]":
    """The texts of every file that is there now, by its path."""
    folder = lake.vector_folder(fingerprint)
    before, now = _seen.get((lake.uri, folder), {}), dict[str, "pl.DataFrame"]()
    for path in lake.files(folder):
        try:
            now[path] = before[path] if path in before else lake.read(path, ["text_digest"])
        except StoreError:
            if lake.exists(path):
                raise
    _seen[lake.uri, folder] = now
    return now
