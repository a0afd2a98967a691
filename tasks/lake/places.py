"""Where the lake's files are: a folder, or a bucket of an object store. Bytes in and out, by paths
relative to the root.

A file is written whole or not at all. In a folder it is written under a name that ends in `.tmp`
and then renamed; a store shows an object only when its upload is complete. Errors of the file
system and the store pass unchanged.

The steps of a build read the same files several times, which in a store costs a request each time.
While `objects_cached` is active, files that never change (`FileKind.is_immutable`) are requested
once."""

import io
import os
import time
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pegboard.errors import ConfigurationError, StoreError
from pegboard.store.database import public_uri
from pegboard.store.storage import DEFAULTS, OPEN_TIMEOUT, storage_options
from pegboard.text.redaction import redact
from tasks.lake import parquet
from tasks.lake.formats import kind_of

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T", int, float)
HALF_WRITTEN = ".tmp"
"""The end of a file's name until it is complete; it stays if the writer is killed."""
CLIENT_OPTIONS = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_content_type",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "randomize_addresses",
    "read_timeout",
    "root_certificate",
    "timeout",
    "user_agent",
}
LANCE_OPTIONS = {"client_max_retries", "client_retry_timeout", "download_retry_count", OPEN_TIMEOUT}
"""Options for Lance or `pegboard.store.database`, which obstore rejects."""
UPLOAD_PART_BYTES = 8 << 20
EMPTY = "status code: 416 "
"""Part of obstore's message for a request for the first bytes of an empty object."""
CachedObjects = dict[str, tuple[int, bytes]]
"""The size and the content of objects by path; no content of those above `parquet.SMALL` bytes."""
_caches: dict[str, CachedObjects] = {}
"""The caches that are active in this process, by the address of the lake."""


class Folder:
    """A folder, local or mounted."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def exists(self, path: str) -> bool:
        return (self.root / path).is_file()

    def get(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def table(
        self, path: str, columns: list[str] | None, *, rows: bool = True
    ) -> "tuple[pl.DataFrame, int]":
        """Return what `parquet.read` does of a Parquet file. Raises Damage."""
        with (self.root / path).open("rb") as file:
            return parquet.read(file, os.fstat(file.fileno()).st_size, columns, rows=rows)

    def put(self, path: str, content: bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        half = target.with_name(f"{target.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}{HALF_WRITTEN}")
        try:
            with half.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            half.replace(target)
        except BaseException:
            # On a full disk a half-written file would only take more space.
            with suppress(OSError):
                half.unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)

    def append(self, path: str, content: bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("ab") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            (self.root / path).unlink(missing_ok=True)

    def walk(self, prefix: str) -> dict[str, tuple[int, float]]:
        """Return all files below a folder, by path: bytes and age in seconds."""
        files: dict[str, tuple[int, float]] = {}
        waiting = [prefix.strip("/")]
        while waiting:
            folder = waiting.pop()
            with suppress(FileNotFoundError), os.scandir(self.root / folder) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}".lstrip("/")
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                        continue
                    with suppress(FileNotFoundError):  # deleted meanwhile
                        state = entry.stat()
                        files[path] = (state.st_size, time.time() - state.st_mtime)
        return files


class ObjectStore:
    """A bucket of S3, Azure, Google or a compatible server, below a prefix."""

    def __init__(self, uri: str) -> None:
        from datetime import timedelta

        from obstore.store import from_url

        options = storage_options(uri)
        client: Any = {
            name: _client_value(name, options[name]) for name in CLIENT_OPTIONS if name in options
        }
        config: Any = {
            name: value
            for name, value in options.items()
            if name not in CLIENT_OPTIONS | LANCE_OPTIONS
        }
        retry: Any = {
            "max_retries": _number(options, "client_max_retries", int),
            "retry_timeout": timedelta(seconds=_number(options, "client_retry_timeout", float)),
        }
        self._store: Any = from_url(uri, config=config, client_options=client, retry_config=retry)

    def exists(self, path: str) -> bool:
        try:
            self._store.head(path)
        except FileNotFoundError:
            return False
        return True

    def get(self, path: str) -> bytes:
        try:
            return bytes(self._store.get(path).bytes())
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error):
                raise OSError(str(error)) from None  # a mistyped bucket is not an empty lake
            raise

    def table(
        self, path: str, columns: list[str] | None, *, rows: bool = True
    ) -> "tuple[pl.DataFrame, int]":
        """Return what `parquet.read` does of a Parquet file. Only the bytes of the columns are
        fetched. Raises Damage.
        """
        size, start = self._start(path)
        return parquet.read(_StoredFile(self._store, path, size, start), size, columns, rows=rows)

    def _start(self, path: str) -> tuple[int, bytes]:
        """Return the size of an object and its first bytes, of a small one all, by one request."""
        from obstore.exceptions import BaseError

        try:
            answer = self._store.get(path, options={"range": (0, parquet.SMALL)})
            return answer.meta["size"], bytes(answer.bytes())
        except BaseError as error:
            if EMPTY not in str(error):
                raise
            return 0, b""

    def put(self, path: str, content: bytes) -> None:
        self._store.put(
            path,
            content,
            use_multipart=len(content) > UPLOAD_PART_BYTES,
            chunk_size=UPLOAD_PART_BYTES,
        )

    def append(self, path: str, content: bytes) -> None:
        stem, dot, kind = path.rpartition(".")
        self.put(f"{stem}-{uuid.uuid4().hex}{dot}{kind}", content)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects, a thousand in a call where the store can. One that is gone may end it:
        the others stay for the next run.
        """
        with suppress(FileNotFoundError):
            self._store.delete(paths[0] if len(paths) == 1 else paths)

    def walk(self, prefix: str) -> dict[str, tuple[int, float]]:
        """Return all objects below a folder, by path: bytes and age in seconds."""
        return {
            meta["path"]: (meta["size"], time.time() - meta["last_modified"].timestamp())
            for page in self._store.list(prefix.strip("/") or None)
            for meta in page
        }


class CachedObjectStore(ObjectStore):
    """A store whose immutable objects are requested once; those above `parquet.SMALL` bytes are
    still read at each use.

    Args:
        cache: shared with the other places of the same address.
    """

    def __init__(self, uri: str, cache: CachedObjects) -> None:
        super().__init__(uri)
        self._cache = cache

    def exists(self, path: str) -> bool:
        """Return whether an object exists. An immutable one is fetched: it is read next."""
        if not kind_of(path).is_immutable:
            return super().exists(path)
        try:
            self._start(path)
        except FileNotFoundError:
            return False
        return True

    def get(self, path: str) -> bytes:
        size, content = self._cache.get(path, (-1, b""))
        if len(content) == size:
            return content
        content = super().get(path)
        self._keep(path, len(content), content)
        return content

    def _start(self, path: str) -> tuple[int, bytes]:
        cached = self._cache.get(path)
        if cached is not None:
            return cached
        size, content = super()._start(path)
        self._keep(path, size, content)
        return size, content

    def put(self, path: str, content: bytes) -> None:
        super().put(path, content)
        self._keep(path, len(content), content)

    def delete(self, paths: Sequence[str]) -> None:
        super().delete(paths)
        for path in paths:
            self._cache.pop(path, None)

    def _keep(self, path: str, size: int, content: bytes) -> None:
        if kind_of(path).is_immutable:
            self._cache[path] = (size, content if size <= parquet.SMALL else b"")


Place = Folder | ObjectStore


@contextmanager
def objects_cached(uri: str) -> Generator[None]:
    """Request immutable files of the lake at an address once, if it is in an object store, until
    the block ends. Files that other processes remove meanwhile stay readable.
    """
    _caches[uri] = {}
    try:
        yield
    finally:
        _caches.pop(uri, None)


def place_at(uri: str) -> Place:
    """Return the place with that address. Raises StoreError for an unknown kind of address."""
    if "\0" in uri:
        raise ConfigurationError(f"The address {uri!r} has a NUL character.")
    if "://" not in uri:
        return Folder(Path(uri))
    if urlsplit(uri).scheme in ("s3", "s3a", "az", "abfs", "abfss", "gs"):
        cache = _caches.get(uri)
        return ObjectStore(uri) if cache is None else CachedObjectStore(uri, cache)
    raise StoreError(
        f"{public_uri(uri)} cannot be opened: expected a folder, s3://, az:// or gs://. Check the "
        f"address."
    )


class _StoredFile(io.RawIOBase):
    """A file of an object store, of which spans are read.

    Args:
        first_bytes: the first bytes of the file, which need no request.
    """

    def __init__(self, store: Any, path: str, size: int, first_bytes: bytes) -> None:
        self._store = store
        self._path = path
        self._size = size
        self._first_bytes = first_bytes
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        content = self._span(self._at, end)
        self._at = end
        return content

    def _span(self, start: int, end: int) -> bytes:
        if end <= len(self._first_bytes):
            return self._first_bytes[start:end]
        return bytes(self._store.get_range(self._path, start=start, end=end))


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that a new name survives a power cut."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _number(options: dict[str, str], name: str, number: type[T]) -> T:
    """Return a numeric option. Raises ConfigurationError if it is no such number."""
    try:
        return number(options[name])
    except ValueError:
        kind = "whole number" if number is int else "number of seconds"
        raise ConfigurationError(
            f"The storage option {name} is '{redact(options[name])}': expected a {kind}, such as "
            f"{DEFAULTS[name]}. Correct it in [board.storage] of the pegboard.toml."
        ) from None


def _client_value(name: str, value: str) -> object:
    return (
        value.lower() in ("true", "1")
        if name in ("allow_http", "allow_invalid_certificates")
        else value
    )
