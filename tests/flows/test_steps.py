"""Names of Prefect's task runs can be filled in from the arguments of their steps."""

import inspect
import string

import pytest

from flows.prefect.runner import RUN_NAMES, task_of


@pytest.mark.parametrize("step", RUN_NAMES, ids=lambda step: step.__name__)
def test_the_name_of_a_task_run_is_made_of_arguments_of_the_step(step):
    names = [field for _, field, _, _ in string.Formatter().parse(RUN_NAMES[step]) if field]
    arguments = {name.split(".")[0] for name in names}

    assert arguments <= set(inspect.signature(step).parameters)
    assert inspect.unwrap(task_of(step).fn) is step
