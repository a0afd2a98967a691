"""Listing a source in a process of its own, which is ended when it takes too much: whatever a
source does costs only its catalog.

The process gets requests on its standard input and answers on a pipe of its own; what it writes to
standard output or error goes nowhere. It only sends plain values, so that nothing of a source is
run here. A process that parsed files may list the next source; one that ran a source's code, or
asked a server, is not used again."""

import atexit
import io
import json
import os
import pickle
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import astuple
from errno import ENOMEM
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any

from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Failure, Listing, SourceOptions
from catalogs.shared.tool_row import Packed, unpacked_row, unpacked_tool
from pegboard.errors import SourceError
from pegboard.records import Agent, Rejected
from pegboard.servers.process import MARK, kill_marked

START = "import sys; sys.path[:] = sys.argv[2:]; from catalogs.shared.worker import work; work()"
LENGTH = 8
"""Bytes that say how long a message is."""
CHUNK = 1 << 20
ROWS_AT_ONCE = 10_000
"""Tools in one message."""
NONSENSE = "The process that lists the source answered nonsense. Correct the source."
IDLE_SECONDS = 5
"""How long a process may wait for its next source; `worker.IDLE_SECONDS` is longer."""


def list_isolated(catalog: str, base: Path, options: SourceOptions) -> Listing:
    """List a source in a process of its own. A source that cannot be listed, or takes more than its
    options allow, gives a listing with the failure of all agents (`*`).

    Of sources that are files, as many are listed at once as there are processors: the others get
    the processes of the first, and none of them has to start one.

    Args:
        base: the folder from which relative paths count.
    """
    with _processors if _is_files(base, options) else nullcontext():
        return _list(catalog, base, options)


def _is_files(base: Path, options: SourceOptions) -> bool:
    inputs = source_kind(options.type).inputs
    try:
        return inputs is not None and inputs(base, options) is not None
    except (SourceError, OSError):
        return False  # the listing reports it


def _list(catalog: str, base: Path, options: SourceOptions) -> Listing:
    request = {
        "kind": options.type,
        "catalog": catalog,
        "base": str(base),
        # What is not set stays so: it may mean something else than its default.
        "options": options.model_dump(mode="json", exclude_unset=True),
    }
    process = _take()
    try:
        answer = process.ask(request, options)
        listing = _listing_of(answer)
    except SourceError as error:
        process.end()
        return Listing(failures=(Failure("*", str(error)),))
    except BaseException:
        process.end()
        raise
    # What follows from files alone leaves nothing behind that the next source would find.
    if source_kind(options.type).inputs is not None and answer["reusable"]:
        process.idle_since = time.monotonic()
        with _lock:
            _idle.append(process)
    else:
        process.end()
    return listing


def plain_values(listing: Listing) -> dict[str, Any]:
    """Return a listing as values of built-in types, for the process that asked for it; of the tools
    how many `packed_rows` has.
    """
    return {
        "agents": [astuple(agent) for agent in listing.agents],
        "rows": len(listing.rows),
        "rejected": [astuple(row) for row in listing.rejected],
        "failures": [astuple(failure) for failure in listing.failures],
        "unreadable": listing.unreadable,
        "repeatable": listing.repeatable,
    }


def packed_rows(listing: Listing) -> Iterator[list[bytes]]:
    """Yield the tools of a listing that was just built, packed, some thousands at a time."""
    if isinstance(listing.rows, Packed):
        rows = listing.rows.packed
        for start in range(0, len(rows), ROWS_AT_ONCE):
            yield list(rows[start : start + ROWS_AT_ONCE])


def _listing_of(answer: Any) -> Listing:
    try:
        return Listing(
            agents=tuple(Agent(*values) for values in answer["agents"]),
            tools=Packed(answer["rows"], unpacked_tool),
            rejected=tuple(Rejected(*values) for values in answer["rejected"]),
            failures=tuple(Failure(*values) for values in answer["failures"]),
            unreadable=answer["unreadable"],
            rows=Packed(answer["rows"], unpacked_row),
            repeatable=answer["repeatable"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(NONSENSE) from error


class _Process:
    """A process that lists one source after the other."""

    def __init__(self) -> None:
        self.state = inherited_state()
        self.idle_since = 0.0
        self._mark = secrets.token_hex(16)
        self._answers, answers = os.pipe()
        # A session of its own: Ctrl-C is for this process, which ends the other.
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", START, str(answers), *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[answers],
            env={**os.environ, MARK: self._mark},
            start_new_session=True,
        )
        os.close(answers)
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        with _lock:
            _running.add(self)

    @property
    def usable(self) -> bool:
        waiting = time.monotonic() - self.idle_since
        return (
            self._process.poll() is None
            and waiting < IDLE_SECONDS
            and self.state == inherited_state()
        )

    def ask(self, request: dict[str, Any], options: SourceOptions) -> Any:
        """Return the answer to a request. Raises SourceError if there is none within the limits."""
        deadline = time.monotonic() + options.max_seconds
        message = json.dumps(request).encode()
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(OSError):  # that it has ended shows when its answer is read
            stdin.write(len(message).to_bytes(LENGTH) + message)
            stdin.flush()
        answer, left = self._message(deadline, options, options.max_memory)
        try:
            count, rows = answer["rows"], list[bytes]()
            while len(rows) < count:
                several, left = self._message(deadline, options, left)
                for row in several:
                    unpacked_tool(row)
                if not several:
                    raise SourceError(NONSENSE)
                rows += several
            return {**answer, "rows": rows}
        except (KeyError, TypeError, ValueError) as error:
            raise SourceError(NONSENSE) from error

    def _message(self, deadline: float, options: SourceOptions, most: int) -> tuple[Any, int]:
        """Return the next message, and how many bytes the others may have."""
        length = int.from_bytes(self._read(LENGTH, deadline, options))
        if length > most:
            raise SourceError(
                f"The listing has {options.max_memory - most + length:,} bytes or more, and may "
                f"have {options.max_memory:,}. Split the source, or raise `max_memory`."
            )
        content = self._read(length, deadline, options)
        try:
            return _Plain(io.BytesIO(content)).load(), most - length
        except Exception as error:
            raise SourceError(NONSENSE) from error

    def end(self) -> None:
        """Kill the process, and what it started."""
        with _lock:
            if self not in _running:
                return
            _running.discard(self)
        self._process.kill()
        self._process.wait()
        kill_marked(self._mark)
        with suppress(OSError):
            self._process.stdin.close()  # pyright: ignore[reportOptionalMemberAccess]
        os.close(self._answers)

    def _read(self, length: int, deadline: float, options: SourceOptions) -> bytes:
        content = bytearray()
        while len(content) < length:
            left = deadline - time.monotonic()
            if left <= 0 or not self._poll.poll(left * 1_000):
                raise SourceError(
                    f"It was not listed within {options.max_seconds:g} seconds. Split the source, "
                    f"or raise `max_seconds`."
                )
            chunk = os.read(self._answers, min(CHUNK, length - len(content)))
            if not chunk:
                raise SourceError(self._ending(options))
            content += chunk
        return bytes(content)

    def _ending(self, options: SourceOptions) -> str:
        """Say how the process ended by itself."""
        status = self._process.wait()
        how = f"exit status {status}"
        if status < 0:
            with suppress(ValueError):
                how = signal.Signals(-status).name
        hint = "Correct the source."
        if status in (ENOMEM, -signal.SIGKILL, -signal.SIGABRT):
            hint = (
                f"If it needs more memory than {options.max_memory:,} bytes, split it or raise "
                f"`max_memory`."
            )
        return f"The process that lists the source ended without an answer ({how}). {hint}"


class _Plain(pickle.Unpickler):
    """Loads values of built-in types, and nothing that would run code."""

    def find_class(self, module: str, name: str, /) -> Any:
        raise pickle.UnpicklingError(f"unexpected {module}.{name}")


_lock = Lock()
_processors = BoundedSemaphore(os.cpu_count() or 1)
_idle: list[_Process] = []
_running: set[_Process] = set()


def inherited_state() -> tuple[dict[str, str], list[str], str]:
    """Return what a process inherits, and what must be the same for it to be used again."""
    return dict(os.environ), list(sys.path), str(Path.cwd())


def _take() -> _Process:
    """Return an idle process, or start one."""
    while True:
        with _lock:
            process = _idle.pop() if _idle else None
        if process is None:
            return _Process()
        if process.usable:
            return process
        process.end()


@atexit.register
def _end_all() -> None:
    """End the processes that other threads wait for, and the idle ones."""
    for process in list(_running):
        process.end()
