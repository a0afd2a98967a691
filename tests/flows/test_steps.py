"""The table of steps and Prefect tasks is complete, and names of task runs can be filled in."""

import ast
import inspect
import string
from types import FunctionType

import pytest

from flows import reindex, sweep
from flows.prefect import flows
from flows.prefect import runner as steps


def steps_called(module):
    """The functions of `tasks` that a run hands over instead of calling them itself: these are its
    steps.
    """
    tree = ast.parse(inspect.getsource(module))
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called
    }
    values = [vars(module).get(name) for name in names]
    return {
        value
        for value in values
        if isinstance(value, FunctionType) and value.__module__.startswith("tasks.")
    }


def test_every_step_of_every_run_is_a_task_and_every_task_is_a_step():
    called = {
        name: steps_called(module)
        for name, module in {"reindex": reindex, "watch": flows, "sweep": sweep}.items()
    }

    assert {name: bool(functions) for name, functions in called.items()} == dict.fromkeys(
        called, True
    )
    assert set.union(*called.values()) == set(steps.STEPS)


@pytest.mark.parametrize("step", steps.STEPS, ids=lambda step: step.__name__)
def test_the_name_of_a_task_run_is_made_of_arguments_of_the_step(step):
    task_name, run_name = steps.STEPS[step]
    fields = [field.split(".")[0] for _, field, _, _ in string.Formatter().parse(run_name) if field]

    assert set(fields) <= set(inspect.signature(step).parameters)
    assert steps.task_of(step).name == task_name
    assert inspect.unwrap(steps.task_of(step).fn) is step


def test_a_function_that_is_no_step_has_no_task():
    with pytest.raises(KeyError):
        steps.task_of(steps_called)
