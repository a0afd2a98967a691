"""Servers for the tests of live MCP servers, and what their listings say."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from tests.children import end_child, start_child

SERVERS = Path(__file__).parent / "servers"


def raw(behaviour, *args, **entry):
    """The configuration of a server with a behaviour of `servers/raw_stdio.py`."""
    script = str(SERVERS / "raw_stdio.py")
    return {"command": sys.executable, "args": [script, behaviour, *args], **entry}


@contextmanager
def http_server(script, *options):
    """Run a server of `servers/`, which prints its port first; yields the port."""
    command = [sys.executable, str(SERVERS / script), *map(str, options)]
    server = start_child(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    yield int(server.stdout.readline())
    end_child(server)
    server.stdout.close()


def names(listing):
    return [tool.name for tool in listing.tools]


def only_failure(listing):
    (failure,) = listing.failures
    assert failure.agent not in [agent.id for agent in listing.agents]
    return failure.why


def failure_in_time(servers, entry, ready):
    """Return why an endless server fails, and the shortest timeout in seconds for which the reason
    is `ready` on this machine.
    """
    for seconds in (1, 4, 16, 64, 256):
        why = only_failure(servers({"raw": entry}, timeout=seconds))
        if ready(why):
            return why, seconds
    raise AssertionError(why)
