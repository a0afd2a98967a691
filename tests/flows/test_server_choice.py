"""Which Prefect server a command uses: the environment's, or none."""

import json
import os
from unittest import mock

import pytest

from flows.prefect.server import check_server, use_prefect
from pegboard.cli.main import main
from pegboard.errors import PegboardError

AWAY = "http://user:hidden@127.0.0.1:1/api"


@pytest.fixture(autouse=True)
def home(tmp_path):
    """The home of a user without Prefect; what a command sets in the environment is undone."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    with mock.patch.dict(os.environ, others | {"HOME": str(tmp_path)}, clear=True):
        yield


def test_without_a_server_prefect_is_used_only_on_request():
    assert use_prefect(None) is False
    assert [name for name in os.environ if name.startswith("PREFECT_")] == []

    assert use_prefect(True) is True
    assert os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"


@pytest.mark.parametrize(
    ("url", "reason"),
    [(AWAY, "refused"), ("nowhere", "unknown url type"), ("http://[", "an invalid URL")],
)
def test_a_server_that_does_not_answer_is_an_error_that_says_what_to_do(url, reason):
    with pytest.raises(PegboardError, match=reason) as raised:
        check_server(url)

    assert "hidden" not in str(raised.value)
    assert str(raised.value).endswith("or run without Prefect: --no-prefect.")


def test_a_command_whose_server_does_not_answer_publishes_only_with_no_prefect(workshop, capsys):
    workshop.servers({"git": [workshop.tool("create_issue")]})
    file = workshop.configure().file
    os.environ["PREFECT_API_URL"] = AWAY
    arguments = ["build", "-c", str(file), "--quiet", "--json"]

    code = main(arguments)
    out, err = capsys.readouterr()
    assert code == 1
    assert err.startswith("pegboard build: The Prefect server at http://127.0.0.1:1/api does not")
    assert "hidden" not in out + err
    assert json.loads(out)["error"]["type"] == "PegboardError"
    assert not (workshop.folder / "board").exists()

    code = main([*arguments, "--no-prefect"])
    outcome = json.loads(capsys.readouterr().out)
    assert (code, outcome["outcome"]) == (0, "published")
