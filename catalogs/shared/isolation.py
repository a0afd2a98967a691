"""Listing a source in a process of its own, which is ended when it takes too much: whatever a
source does costs only its catalog.

The process gets requests and answers on a pipe; what it writes to standard output or error goes
nowhere. What it sends is JSON, so that nothing of a source is run here. A process that read files
lists the next source; one that ran a source's code, or asked a server, is not used again."""

import atexit
import gc
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from errno import ENOMEM
from math import ceil
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import BoundedSemaphore, Lock, Thread, Timer
from typing import Any

from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Failure, Listing, ListingBuilder, SourceOptions, reason_of
from catalogs.shared.supervisor import kill_descendants
from catalogs.shared.tool_row import row_frame
from pegboard.errors import SourceError
from pegboard.records import Agent, Rejected
from pegboard.servers.references import secrets_in_catalogs, secrets_of

START = """import sys; sys.path[:] = sys.argv[2:]
from catalogs.shared.supervisor import supervise
supervise()
from catalogs.shared.isolation import work
work()"""
MAX_KEPT = 50_000_000
"""Bytes of an answer after which its process is ended: it took several times as much memory."""
SPARE_SECONDS = 60
RARE = 200_000
"""Objects between two collections of cyclic garbage. A large listing is millions of objects that
stay, and traversing them again and again was a third of its time."""
INVALID = "The process that lists the source sent no valid listing. Correct the source."


def list_isolated(catalog: str, base: Path, options: SourceOptions) -> Listing:
    """List a source in a process of its own. A source that cannot be listed, or takes more than its
    options allow, gives a listing with the failure of all agents (`*`).

    Of sources that are files, as many are listed at once as there are processors: the others get
    the processes of the first, and none of them has to start one.

    Args:
        base: the folder from which relative paths count.
    """
    request = {
        "kind": options.type,
        "catalog": catalog,
        "base": str(base.absolute()),
        # What is not set stays so: it may mean something else than its default.
        "options": options.model_dump(mode="json", exclude_unset=True),
        "environment": dict(os.environ),
    }
    files, reusable = _is_files(base, options), False
    with _processors if files else nullcontext():
        process = _take()
        try:
            answer = process.ask(json.dumps(request).encode(), options)
            listing = _listing(answer)
            if not files:  # code of the source may have written to the pipe
                row_frame(listing.rows)
            reusable = files and not listing.failures and len(answer) < MAX_KEPT
            return listing
        except SourceError as error:
            return Listing(failures=(Failure("*", str(error)),))
        except (LookupError, TypeError, ValueError):
            return Listing(failures=(Failure("*", INVALID),))
        finally:
            if reusable:
                with _lock:
                    _idle.append(process)
            else:
                process.end()


def _is_files(base: Path, options: SourceOptions) -> bool:
    inputs = source_kind(options.type).inputs
    try:
        return inputs is not None and inputs(base, options) is not None
    except (SourceError, OSError):
        return False  # the listing reports it


def _listing(answer: bytes) -> Listing:
    head, *rows = answer.split(b"\n")
    values = json.loads(head)
    return Listing(
        agents=tuple(Agent(**agent) for agent in values["agents"]),
        rows=rows,
        rejected=tuple(Rejected(**record) for record in values["rejected"]),
        failures=tuple(Failure(**failure) for failure in values["failures"]),
        unreadable=tuple(values["unreadable"]),
        repeatable=values["repeatable"],
    )


class _Process:
    """A process that lists one source after the other."""

    def __init__(self) -> None:
        self._path = list(sys.path)
        self._late = False
        self._pipe, theirs = Pipe()
        # A session of its own: Ctrl-C is for this process, which ends the other.
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", START, str(theirs.fileno()), *sys.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        with _lock:
            _running.add(self)

    @property
    def usable(self) -> bool:
        return self._process.poll() is None and self._path == sys.path

    def ask(self, request: bytes, options: SourceOptions) -> bytes:
        """Return the answer to a request. Raises SourceError if there is none within the limits."""
        timer = Timer(options.max_seconds, self._time_out)
        timer.daemon = True
        timer.start()
        try:
            self._pipe.send_bytes(request)
            return self._pipe.recv_bytes(options.max_memory)
        except (EOFError, OSError) as error:
            if str(error) == "bad message length":
                raise SourceError(
                    f"The listing has more than {options.max_memory:,} bytes. Split the source, or "
                    f"raise `max_memory`."
                ) from None
            raise SourceError(self._ending(options)) from error
        finally:
            timer.cancel()

    def end(self) -> None:
        """Kill the process, and what it started."""
        with _lock:
            if self not in _running:
                return
            _running.discard(self)
        self._kill()
        self._pipe.close()

    def _time_out(self) -> None:
        self._late = True
        self._kill()

    def _kill(self) -> None:
        kill_descendants(self._process.pid)
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _ending(self, options: SourceOptions) -> str:
        """Say why the process gave no answer."""
        if self._late:
            return (
                f"It was not listed within {options.max_seconds:g} seconds. Split the source, or "
                f"raise `max_seconds`."
            )
        status = self._process.wait()
        how = f"exit status {status}"
        number = -status if status < 0 else status - 128
        with suppress(ValueError):
            how = signal.Signals(number).name
        hint = "Correct the source."
        if status == ENOMEM or number in (signal.SIGKILL, signal.SIGABRT):
            hint = (
                f"If it needs more memory than {options.max_memory:,} bytes, split it or raise "
                f"`max_memory`."
            )
        return f"The process that lists the source ended without an answer ({how}). {hint}"


_lock = Lock()
_processors = BoundedSemaphore(os.cpu_count() or 1)
_idle: list[_Process] = []
_running: set[_Process] = set()


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


def work() -> None:
    """Answer requests. The process ends at once, with all that it started, when the one that asks
    has ended.
    """
    gc.set_threshold(RARE, *gc.get_threshold()[1:])
    file = int(sys.argv[1])
    os.set_inheritable(file, False)
    pipe, requests = Connection(file), SimpleQueue[dict[str, Any]]()
    Thread(target=_receive, args=(pipe, requests), daemon=True).start()
    while True:
        try:
            pipe.send_bytes(_answer(requests.get()))
        except MemoryError:  # there was none left to say so
            os._exit(ENOMEM)


def _receive(pipe: Connection, requests: "SimpleQueue[dict[str, Any]]") -> None:
    with suppress(EOFError, OSError):
        while True:
            requests.put(json.loads(pipe.recv_bytes()))
    os._exit(0)


def _answer(request: dict[str, Any]) -> bytes:
    """List a source, and return lines of JSON: the listing without its rows, then each row. Of a
    source that fails, this is its failure and the records that were rejected until then.
    """
    os.environ.clear()
    os.environ.update(request["environment"])
    builder = ListingBuilder(request["catalog"], Path(request["base"]))
    try:
        kind = source_kind(request["kind"])
        options = kind.options.model_validate(request["options"])
        builder.tags = options.tags
        builder.secrets.add(secrets_in_catalogs(secrets_of(request["options"])))
        with _limits(options.max_memory, options.max_seconds):
            kind.read(builder, options)
            listing = builder.build()
    except BaseException as error:
        failure = Failure("*", builder.text(reason_of(error)))
        listing = Listing(rejected=tuple(builder.rejected), failures=(failure,))
    head = asdict(replace(listing, rows=()))
    return b"\n".join([json.dumps(head).encode(), *listing.rows])


@contextmanager
def _limits(memory: int, seconds: float) -> Generator[None]:
    """Limit the memory that this process may take. Its time is limited by the process that asks;
    the limit on its processor time ends it when that one was killed, whatever it is doing.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    processor = used.ru_utime + used.ru_stime + seconds * (os.cpu_count() or 1) + SPARE_SECONDS
    limits = {resource.RLIMIT_DATA: memory, resource.RLIMIT_CPU: ceil(processor)}
    before = {kind: resource.getrlimit(kind) for kind in limits}
    try:
        for kind, value in limits.items():
            with suppress(OSError, ValueError):  # a system that does not have it, or a lower one
                resource.setrlimit(kind, (value, before[kind][1]))
        yield
    finally:
        for kind, value in before.items():
            with suppress(OSError, ValueError):
                resource.setrlimit(kind, value)
