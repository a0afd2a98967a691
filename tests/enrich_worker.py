"""Runs the enrichment of a board in children that end themselves where a test wants it: started as
a process of its own.

    python tests/enrich_worker.py CONFIG CATALOG=SNAPSHOT...

LiteLLM takes seconds to import, so it is imported once; every line on stdin forks a child that does
the run. The line is a JSON number: the child kills itself at that boundary of its writes, or at
none for 0. When the child has ended, its status is printed, negative for a signal. Nothing that
starts threads is imported before the fork. All children end with this process, and this process
with its parent."""

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


class Boundaries:
    """Counts the moments before and after every call that changes the lake; dies at one of them."""

    def __init__(self, deadly: int) -> None:
        self._deadly, self._count = deadly, 0

    def step(self) -> None:
        self._count += 1
        if self._count == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, owner: type, name: str) -> None:
        call: Callable[..., Any] = getattr(owner, name)

        @wraps(call)
        def around(*args: Any, **kwargs: Any) -> Any:
            self.step()
            result = call(*args, **kwargs)
            self.step()
            return result

        @wraps(call)
        async def around_async(*args: Any, **kwargs: Any) -> Any:
            self.step()
            result = await call(*args, **kwargs)
            self.step()
            return result

        setattr(owner, name, around_async if iscoroutinefunction(call) else around)


def work(config: str, snapshots: dict[str, str], deadly: int) -> None:
    from tasks.enrich import enrich_tools
    from tasks.enrichment.ledger import LakeLedger
    from tasks.lake.files import Lake
    from tasks.settings.configuration import load_configuration

    boundaries = Boundaries(deadly)
    for owner, names in (
        (LakeLedger, ("add",)),
        (Lake, ("write_json", "delete")),
    ):
        for name in names:
            boundaries.watch(owner, name)
    enriched = enrich_tools(load_configuration(config), snapshots)
    if enriched.problems:
        raise SystemExit("\n".join(enriched.problems))


def main() -> None:
    import litellm
    import openai.resources.chat  # noqa: F401

    import tasks.enrich  # noqa: F401
    from tests.children import follow_parent

    litellm.suppress_debug_info = True
    config, *pairs = sys.argv[1:]
    snapshots = dict(pair.split("=", 1) for pair in pairs)
    parent = os.getpid()
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            follow_parent(parent)
            os.close(0)
            status = 1
            try:
                work(config, snapshots, json.loads(line))
                status = 0
            except SystemExit as problems:
                print(problems, file=sys.stderr, flush=True)
            finally:
                os._exit(status)
        _, how = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(how), flush=True)


if __name__ == "__main__":
    main()
