"""Which Prefect server a command uses: that of PREFECT_API_URL; with --prefect, any of Prefect's.

Importing this module does not import Prefect, so that a direct run never does.
"""

import os
import sys
import urllib.error
import urllib.request
from http.client import HTTPException

from pegboard.errors import PegboardError
from pegboard.store.database import public_uri

ANSWER_SECONDS = 30


def server_url() -> str | None:
    """Return the URL in PREFECT_API_URL, else None."""
    return os.environ.get("PREFECT_API_URL") or None


def use_prefect(option: bool | None) -> bool:
    """Return whether a command runs as a Prefect flow; if so, prepare Prefect's environment before
    its first import.

    Args:
        option: --prefect or --no-prefect; with None, a command is a flow if a server is named.

    Raises:
        PegboardError: a server is named and does not answer.
    """
    url = server_url()
    if option is False or (option is None and url is None):
        return False
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    if "prefect" not in sys.modules:  # its settings are read at its import
        # The command reports errors itself, in one message; the run's log is on the server.
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
        # A new database takes longer than the default of 20 seconds on a small machine.
        os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
    if url is None:
        url = _profile_url()
    if url:
        check_server(url)
    return True


def require_server() -> None:
    """Prepare the use of a running Prefect server, of the environment or the active profile.

    Raises:
        PegboardError: none is named, or it does not answer.
    """
    use_prefect(True)
    if not (server_url() or _profile_url()):
        raise PegboardError(
            "No Prefect server is named. Start one (`prefect server start`), and set "
            "PREFECT_API_URL=http://127.0.0.1:4200/api or Prefect's profile."
        )


def server_answers() -> bool:
    """Return whether the server that Prefect uses answers now."""
    import httpx
    from prefect import get_client

    try:
        with get_client(sync_client=True) as client:
            return client.api_healthcheck() is None
    except (httpx.HTTPError, RuntimeError):
        return False


def _profile_url() -> str | None:
    """Return the server of the active profile, which Prefect itself reads."""
    from prefect.settings import PREFECT_API_URL

    return PREFECT_API_URL.value()


def check_server(url: str) -> None:
    """Raise PegboardError if the Prefect server at `url` does not answer at all."""
    place = "the configured address"
    try:
        place = public_uri(url)
        # Not `url`: urllib takes a user in it for a part of the host.
        with urllib.request.urlopen(f"{place.rstrip('/')}/health", timeout=ANSWER_SECONDS):  # noqa: S310  the user's own
            return
    except urllib.error.HTTPError:
        return  # it answers; Prefect's client reports a refused login
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise PegboardError(
            f"The Prefect server at {place} does not answer: {reason}. Start it (`prefect server "
            "start`), correct PREFECT_API_URL or Prefect's profile, or run without "
            "Prefect: --no-prefect."
        ) from error
