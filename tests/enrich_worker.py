"""Runs the enrichment of a board in children that a test may kill: started as a process of its own.

    python tests/enrich_worker.py CONFIG CATALOG=SNAPSHOT...

LiteLLM and Prefect take seconds to import, so they are imported once; every line on stdin forks a child that does the run, and its
process id is printed. When the child has ended, `ended STATUS` is printed, negative for a signal. Nothing that starts threads is
imported before the fork.
"""

import os
import sys

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def work(config: str, snapshots: dict[str, str]) -> None:
    from tasks.configuration import load_configuration
    from tasks.enrich import enrich_tools

    enriched = enrich_tools(load_configuration(config), snapshots)
    if enriched.problems:
        raise SystemExit("\n".join(enriched.problems))


def main() -> None:
    import litellm
    import openai.resources.chat  # noqa: F401

    import tasks.enrich  # noqa: F401

    litellm.suppress_debug_info = True
    config, *pairs = sys.argv[1:]
    snapshots = dict(pair.split("=", 1) for pair in pairs)
    print("ready", flush=True)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            os.close(0)
            status = 1
            try:
                work(config, snapshots)
                status = 0
            except SystemExit as problems:
                print(problems, file=sys.stderr, flush=True)
            finally:
                os._exit(status)
        print(child, flush=True)
        _, how = os.waitpid(child, 0)
        print("ended", os.waitstatus_to_exitcode(how), flush=True)


if __name__ == "__main__":
    main()
