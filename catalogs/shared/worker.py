"""The process in which sources are listed; see `isolation`, which starts it."""

import gc
import json
import os
import pickle
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOMEM
from math import ceil
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from catalogs.shared.isolation import LENGTH, packed_rows, plain_values
from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Failure, Listing, ListingBuilder, reason_of
from pegboard.servers.process import MARK, kill_marked
from pegboard.servers.references import secrets_in_catalogs, secrets_of

IDLE_SECONDS = 60
"""After which a process without a request ends."""
MAX_KEPT = 400_000_000
"""Bytes of memory with which a process may list another source."""
SPARE_SECONDS = 60
RARE = 200_000
"""Objects between two collections of cyclic garbage. A large listing is millions of objects that
stay, and traversing them again and again was a third of its time."""


def work() -> None:
    """Answer requests until there are no more. Ends at once, with all that it started, when the
    process that asks has ended.
    """
    gc.set_threshold(RARE, *gc.get_threshold()[1:])
    answers = int(sys.argv[1])
    os.set_inheritable(answers, False)
    requests = SimpleQueue[dict[str, Any]]()
    Thread(target=_receive, args=(_private_input(), requests), daemon=True).start()
    while True:
        try:
            request = requests.get(timeout=IDLE_SECONDS)
        except Empty:
            return
        try:
            listing = _list(request)
            values = plain_values(listing)
        except MemoryError:  # there was none left to say so
            os._exit(ENOMEM)
        _send(answers, {**values, "reusable": _peak_memory() < MAX_KEPT})
        for rows in packed_rows(listing):
            _send(answers, rows)
        del listing


def _peak_memory() -> int:
    """Return the most bytes that this process had in memory."""
    # Not `ru_maxrss`, which counts the process that started this one.
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _private_input() -> int:
    """Return the standard input under another number; code of a source that reads it finds
    nothing.
    """
    private = os.dup(0)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    return private


def _receive(source: int, requests: "SimpleQueue[dict[str, Any]]") -> None:
    with os.fdopen(source, "rb") as file:
        while head := file.read(LENGTH):
            requests.put(json.loads(file.read(int.from_bytes(head))))
    kill_marked(os.environ[MARK])
    os._exit(0)


def _list(request: dict[str, Any]) -> Listing:
    """List a source, or return its failure and the records that were rejected until then."""
    builder = ListingBuilder(request["catalog"], Path(request["base"]))
    try:
        kind = source_kind(request["kind"])
        options = kind.options.model_validate(request["options"])
        builder.tags = options.tags
        builder.secrets.add(secrets_in_catalogs(secrets_of(request["options"])))
        with _limits(options.max_memory, options.max_seconds):
            kind.read(builder, options)
            return builder.build()
    except BaseException as error:
        failure = Failure("*", builder.text(reason_of(error)))
        return Listing(rejected=tuple(builder.rejected), failures=(failure,))


@contextmanager
def _limits(memory: int, seconds: float) -> Iterator[None]:
    """Limit the memory that this process may take. Its time is limited by the process that asks;
    the limit on its processor time ends it when that one was killed, whatever it is doing.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    processor = used.ru_utime + used.ru_stime + seconds * (os.cpu_count() or 1) + SPARE_SECONDS
    before = {
        kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_DATA, resource.RLIMIT_CPU)
    }
    try:
        _set_limit(resource.RLIMIT_DATA, memory)
        _set_limit(resource.RLIMIT_CPU, ceil(processor))
        yield
    finally:
        for kind, limits in before.items():
            with suppress(OSError, ValueError):
                resource.setrlimit(kind, limits)


def _set_limit(kind: int, value: int) -> None:
    with suppress(OSError, ValueError):  # a system that does not have it, or a lower one
        resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))


def _send(file: int, values: Any) -> None:
    message = pickle.dumps(values)
    _write(file, len(message).to_bytes(LENGTH))
    _write(file, message)


def _write(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
