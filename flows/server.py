"""Prefect's own API server, for one run on a machine without one. Started by `flows.engine`; ends with its parent.

It is the server of `prefect server start` on a socket that the parent opened, so no port has to be guessed, less what one
run does not need: background services, the UI, and the registration of block types.
"""

import gc
import os
import sys
import threading

__all__ = ["main"]


def main(descriptor: int) -> None:
    """Serve the Prefect API on an open, listening socket until stdin ends, which it does when the parent is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Imports make millions of objects and hardly any garbage: looking for it costs an eighth of the start.
    gc.set_threshold(100_000, 50, 50)
    import uvicorn

    uvicorn.run(
        "prefect.server.api.server:create_app",
        factory=True,
        fd=descriptor,
        log_level="error",
        timeout_graceful_shutdown=1,
    )


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
