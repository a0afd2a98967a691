"""A run that is killed when two shards of ten texts are encoded, or two cells of a sweep measured.

killed_run.py build|flow|sweep CONFIG
"""

import os
import signal
import sys

import tasks.embed
from flows.build import build
from flows.reindex import reindex
from flows.runner import DirectRunner
from flows.sweep import sweep
from tasks.settings.configuration import load_configuration
from tasks.settings.sweep import read_sweep
from tasks.sweep.cells import measure_cell

FINISHED = 2


class Killed:
    """Has another runner call the steps, and kills the process when two pieces are finished."""

    def __init__(self, runner):
        self.runner = runner
        self.cells = 0

    def call(self, step, *args, **kwargs):
        if step is measure_cell:
            if self.cells == FINISHED:
                os.kill(os.getpid(), signal.SIGKILL)
            self.cells += 1
        return self.runner.call(step, *args, **kwargs)

    def each(self, calls, at_once):
        if calls and calls[0].func is tasks.embed.embed_shard and len(calls) > FINISHED:
            self.runner.each(calls[:FINISHED], 1)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.runner.each(calls, at_once)


def main(how, config):
    if how != "sweep":  # which is killed later
        tasks.embed.SHARD_TEXTS = 10
    if how == "build":
        reindex(load_configuration(config), runner=Killed(DirectRunner()))
    elif how == "flow":
        import flows.prefect.flows as adapter

        runner_of_prefect = adapter.PrefectRunner
        adapter.PrefectRunner = lambda: Killed(runner_of_prefect())
        build(config, prefect=True)
    else:
        sweep(read_sweep(config, {}), runner=Killed(DirectRunner()))


if __name__ == "__main__":
    main(*sys.argv[1:])
