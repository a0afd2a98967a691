"""A run that is killed when two shards of ten texts are encoded.

killed_run.py build|flow CONFIG
"""

import os
import signal
import sys

import tasks.steps.embed
from flows.build import build
from flows.reindex import reindex
from flows.runner import DirectRunner
from tasks.settings.configuration import load_configuration

FINISHED = 2


class Killed:
    """Has another runner call the steps, and kills the process when two pieces are finished."""

    def __init__(self, runner):
        self.runner = runner

    def call(self, step, *args, **kwargs):
        return self.runner.call(step, *args, **kwargs)

    def each(self, calls, at_once):
        if calls and calls[0].func is tasks.steps.embed.embed_shard and len(calls) > FINISHED:
            self.runner.each(calls[:FINISHED], 1)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.runner.each(calls, at_once)


def main(how, config):
    tasks.steps.embed.SHARD_TEXTS = 10
    if how == "build":
        reindex(load_configuration(config), runner=Killed(DirectRunner()))
    else:
        import flows.prefect.flows as adapter

        runner_of_prefect = adapter.PrefectRunner
        adapter.PrefectRunner = lambda: Killed(runner_of_prefect())
        build(config, prefect=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
