"""`pegboard build` as a Prefect flow that notes its events and waits at some of them: started as a
process of its own.

    python tests/faults/flow.py FOLDER N KEEP [HOLD...]

PREFECT_API_URL names the server. See events.py; what the command prints goes to stdout.
"""

import sys
from pathlib import Path

import flows.prefect.flows
from flows.prefect.runner import PrefectRunner
from pegboard.cli.main import main
from tests.faults import world
from tests.faults.events import Events
from tests.step_events import StepEvents

folder, n, keep, *holds = sys.argv[1:]
events = Events(Path(folder), int(n), holds)
flows.prefect.flows.PrefectRunner = lambda: StepEvents(PrefectRunner(), events.step)
sys.exit(main(["build", "--prefect", "--json", "-c", str(world.write(Path(folder), int(n), keep))]))
