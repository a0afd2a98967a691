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

    def phase(self, phase, *args, **kwargs):
        return self.runner.phase(phase, *args, **kwargs)

    def call(self, step, **inputs):
        return self.runner.call(step, **inputs)

    def each(self, steps, at_once, **inputs):
        if steps and steps[0].func is tasks.steps.embed.embed_shard and len(steps) > FINISHED:
            self.runner.each(steps[:FINISHED], 1, **inputs)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.runner.each(steps, at_once, **inputs)


def main(how, config):
    tasks.steps.embed.SHARD_TEXTS = 10
    if how == "build":
        reindex(load_configuration(config), runner=Killed(DirectRunner()))
    else:
        import flows.prefect.flows as adapter

        runner_of_prefect = adapter.PrefectRunner
        adapter.PrefectRunner = lambda *args: Killed(runner_of_prefect(*args))
        build(config, prefect=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
