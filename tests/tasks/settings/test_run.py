"""`[run]`: what it accepts, and the problems it reports."""

import pytest
from pydantic import ValidationError

from pegboard.toml_settings import problems_of
from tasks.settings.configuration import RunSettings


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"engine": "proceses"}, "did you mean 'processes'?"),
        ({"engin": "processes"}, "did you mean 'engine'?"),
        ({"engine": "processes", "workers": 0}, "greater than or equal to 1"),
        ({"workers": 2}, 'engine = "local" has none; set engine to "processes"'),
        ({"engine": "processes", "address": "tcp://a:1"}, 'the scheduler of engine = "dask"'),
        ({"engine": "dask"}, 'the scheduler of engine = "dask", as in tcp://scheduler:8786'),
        ({"engine": "dask", "address": "scheduler"}, "address"),
        ({"engine": "ray"}, "'local', 'processes' or 'dask'"),
    ],
)
def test_problems_say_what_is_expected(table, problem):
    with pytest.raises(ValidationError) as error:
        RunSettings(**table)

    (line,) = problems_of(error.value, RunSettings, "run.")
    assert line.startswith("run.")
    assert problem in line
