"""List each source in a separate process with limits on time and memory, so that failures are
isolated per catalog.

Requests and answers go through a pipe; the process's standard output and error are discarded.
Answers are JSON, so no code of a source runs in the parent. A process that only read files is
reused; one that ran code of a source or contacted a server is not."""

import atexit
import gc
import json
import logging
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
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
from catalogs.shared.reading import list_source
from catalogs.shared.retries import SHARE_OF_TIME, Retries
from catalogs.shared.supervisor import kill_descendants
from catalogs.shared.tool_row import row_frame
from pegboard.errors import SourceError
from pegboard.records import Agent, Notice, Rejected
from pegboard.servers.references import secrets_in_catalogs, secrets_of
from pegboard.text.redaction import redact_line

logger = logging.getLogger(__name__)

START = """import sys; sys.path[:] = sys.argv[2:]
from catalogs.shared.supervisor import supervise
supervise()
from catalogs.shared.isolation import work
work()"""
MAX_REUSABLE = 50_000_000
"""Bytes of an answer above which its process is not reused, since its memory use is several times
as high."""
SPARE_SECONDS = 60
"""Processor seconds that a process may use beyond `max_seconds` on every core."""
GC_THRESHOLD = 200_000
"""Allocated objects between two runs of the cyclic garbage collector. A large listing has millions
of live objects, and traversing them took a third of its time."""
RETRY = b"retry "
"""Begins a message of the process that reports a retry; an answer begins with a JSON object."""
MAX_REPORTS = 1_000
"""Number of retries of one listing that are logged; code of a source could send any number."""
INVALID = "The process that lists the source sent an invalid listing. Correct the source."
"""Failure of a source whose process sent something other than a listing."""


def list_isolated(catalog: str, base: Path, options: SourceOptions) -> Listing:
    """List a source in a separate process. A source that cannot be listed within its limits gives a
    listing with a failure of all agents (`*`).

    Sources that are files are CPU-bound, so at most as many are listed at once as there are
    processors; later ones reuse the processes of earlier ones.

    Args:
        base: the folder from which relative paths count.
    """
    request = {
        "kind": options.type,
        "catalog": catalog,
        "base": str(base.absolute()),
        # Unset options stay unset, since a set default may mean something else.
        "options": options.model_dump(mode="json", exclude_unset=True),
        "environment": dict(os.environ),
    }
    files = _is_files(base, options)
    reusable = False
    with _processors if files else nullcontext():
        process = _take()
        try:
            answer = process.ask(catalog, json.dumps(request).encode(), options)
            listing = _listing(answer)
            if not files:  # code of the source may have written to the pipe, so check the rows
                row_frame(listing.rows)
            reusable = files and not listing.failures and len(answer) < MAX_REUSABLE
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
        notices=tuple(Notice(**notice) for notice in values["notices"]),
        failures=tuple(Failure(**failure) for failure in values["failures"]),
        unreadable=tuple(values["unreadable"]),
        repeatable=values["repeatable"],
    )


class _Process:
    """A process that lists sources one after the other."""

    def __init__(self) -> None:
        self._path = list(sys.path)
        self._timed_out = False
        self._pipe, child_end = Pipe()
        # A new session, so that Ctrl-C reaches only the parent, which ends the process.
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", START, str(child_end.fileno()), *sys.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[child_end.fileno()],
            start_new_session=True,
        )
        child_end.close()
        with _lock:
            _running.add(self)

    @property
    def usable(self) -> bool:
        return self._process.poll() is None and self._path == sys.path

    def ask(self, catalog: str, request: bytes, options: SourceOptions) -> bytes:
        """Return the answer to a request, and log what is retried meanwhile.

        Raises SourceError if the limits are exceeded.
        """
        timer = Timer(options.max_seconds, self._time_out)
        timer.daemon = True
        timer.start()
        try:
            self._pipe.send_bytes(request)
            for _ in range(MAX_REPORTS + 1):
                message = self._pipe.recv_bytes(options.max_memory)
                if not message.startswith(RETRY):
                    return message
                text = message.removeprefix(RETRY).decode("utf-8", "replace")
                logger.warning("%s: %s", catalog, redact_line(text))
            raise SourceError(INVALID)  # code of the source writes to the pipe
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
        """Kill the process and its descendants."""
        with _lock:
            if self not in _running:
                return
            _running.discard(self)
        self._kill()
        self._pipe.close()

    def _time_out(self) -> None:
        self._timed_out = True
        self._kill()

    def _kill(self) -> None:
        kill_descendants(self._process.pid)
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _ending(self, options: SourceOptions) -> str:
        """Return the reason why the process gave no answer."""
        if self._timed_out:
            return (
                f"Listing took more than {options.max_seconds:g} seconds. Split the source, or "
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
"""Processes that can list another source."""
_running: set[_Process] = set()
"""All processes that have not been ended, idle ones included."""


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
    """End all processes, including those that other threads wait for."""
    for process in list(_running):
        process.end()


def work() -> None:
    """Answer requests from the pipe. When the parent ends, this process ends at once, with all of
    its descendants.
    """
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])
    file = int(sys.argv[1])
    os.set_inheritable(file, False)
    pipe = Connection(file)
    requests = SimpleQueue[dict[str, Any]]()
    Thread(target=_receive, args=(pipe, requests), daemon=True).start()
    while True:
        try:
            pipe.send_bytes(_answer(requests.get(), _Reporter(pipe)))
        except MemoryError:  # too little memory is left for an answer
            os._exit(ENOMEM)


class _Reporter:
    """Sends reports of retries, as many as the parent accepts for one request."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._count = 0

    def __call__(self, text: str) -> None:
        self._count += 1
        if self._count <= MAX_REPORTS:
            self._pipe.send_bytes(RETRY + text.encode("utf-8", "replace"))


def _receive(pipe: Connection, requests: "SimpleQueue[dict[str, Any]]") -> None:
    with suppress(EOFError, OSError):
        while True:
            requests.put(json.loads(pipe.recv_bytes()))
    os._exit(0)


def _answer(request: dict[str, Any], report: Callable[[str], None]) -> bytes:
    """List a source, and return lines of JSON: the listing without its rows, then each row.

    If the source fails, the listing has the failure and the records rejected so far.

    Args:
        report: called with each failure that is retried.
    """
    os.environ.clear()
    os.environ.update(request["environment"])
    builder = ListingBuilder(request["catalog"], Path(request["base"]))
    try:
        kind = source_kind(request["kind"])
        options = kind.options.model_validate(request["options"])
        builder.tags = options.tags
        builder.secrets.add(secrets_in_catalogs(secrets_of(request["options"])))
        builder.retries = Retries(
            attempts=options.attempts,
            max_wait=options.max_wait,
            seconds=options.max_seconds * SHARE_OF_TIME,
            report=lambda text: report(builder.secrets.hide(text)),
        )
        with _limits(options.max_memory, options.max_seconds):
            listing = list_source(kind, builder, options)
    except BaseException as error:
        failure = Failure("*", builder.text(reason_of(error)))
        listing = Listing(
            rejected=tuple(builder.rejected), notices=tuple(builder.notices), failures=(failure,)
        )
    head = asdict(replace(listing, rows=()))
    return b"\n".join([json.dumps(head).encode(), *listing.rows])


@contextmanager
def _limits(memory: int, seconds: float) -> Generator[None]:
    """Limit the memory and processor time of this process.

    The parent limits elapsed time; the limit on processor time ends the process if the parent was
    killed.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    processor = used.ru_utime + used.ru_stime + seconds * (os.cpu_count() or 1) + SPARE_SECONDS
    limits = {resource.RLIMIT_DATA: memory, resource.RLIMIT_CPU: ceil(processor)}
    previous_limits = {kind: resource.getrlimit(kind) for kind in limits}
    try:
        for kind, value in limits.items():
            with suppress(OSError, ValueError):  # unsupported here, or above the hard limit
                resource.setrlimit(kind, (value, previous_limits[kind][1]))
        yield
    finally:
        for kind, value in previous_limits.items():
            with suppress(OSError, ValueError):
                resource.setrlimit(kind, value)
