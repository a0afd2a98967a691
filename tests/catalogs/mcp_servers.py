"""Servers for the tests of live MCP servers, and what their listings say."""

import sys
from pathlib import Path

SERVERS = Path(__file__).parent / "servers"


def raw(behaviour, *args, **entry):
    """The configuration of a server that behaves so; see `servers/raw_stdio.py`."""
    script = str(SERVERS / "raw_stdio.py")
    return {"command": sys.executable, "args": [script, behaviour, *args], **entry}


def names(listing):
    return [tool.name for tool in listing.tools]


def only_failure(listing):
    (failure,) = listing.failures
    assert failure.agent not in [agent.id for agent in listing.agents]
    return failure.why


def failure_in_time(servers, entry, ready):
    """Why a server without an end fails, and within how many seconds: as many as it takes to get
    `ready` on this machine.
    """
    for seconds in (1, 4, 16, 64, 256):
        why = only_failure(servers({"raw": entry}, timeout=seconds))
        if ready(why):
            return why, seconds
    raise AssertionError(why)
