"""Which Prefect server a command uses: the environment's, the active profile's, or none. No server
runs here.
"""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

import pytest

from flows.prefect.server import check_server, server_url, use_prefect
from pegboard.cli.main import main
from pegboard.errors import PegboardError

AWAY = "http://user:hidden@127.0.0.1:1/api"
PROFILES = """
active = "work"

[profiles.work]
PREFECT_API_URL = "http://work:4200/api"

[profiles.cloud]
PREFECT_API_URL = "http://cloud:4200/api"

[profiles.local]
PREFECT_LOGGING_LEVEL = "DEBUG"
"""


@pytest.fixture(autouse=True)
def home(tmp_path):
    """The home of a user without Prefect; whatever a command sets in the environment is undone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    with mock.patch.dict(os.environ, kept | {"HOME": str(tmp_path)}, clear=True):
        yield tmp_path


def write_profiles(home, text=PROFILES, folder=".prefect"):
    (home / folder).mkdir()
    (home / folder / "profiles.toml").write_text(text, "utf-8")


@pytest.fixture
def server():
    """The address of an HTTP server that answers every request with the status it is given."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(self.server.status)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as answering:
        answering.status = 200
        thread = threading.Thread(target=answering.serve_forever)
        thread.start()
        try:
            yield answering
        finally:
            answering.shutdown()
            thread.join()


def test_no_server_is_named_where_there_is_no_variable_and_no_profile():
    assert server_url() is None
    assert use_prefect(None) is False
    assert [name for name in os.environ if name.startswith("PREFECT_")] == []


def test_the_variable_comes_before_the_profile(home):
    write_profiles(home)
    os.environ["PREFECT_API_URL"] = "http://variable/api"

    assert server_url() == "http://variable/api"


@pytest.mark.parametrize(
    ("profile", "url"),
    [
        (None, "http://work:4200/api"),
        ("cloud", "http://cloud:4200/api"),
        ("local", None),
        ("nosuch", None),
    ],
)
def test_a_server_that_the_active_profile_names_is_found(home, profile, url):
    write_profiles(home)
    if profile:
        os.environ["PREFECT_PROFILE"] = profile

    assert server_url() == url


@pytest.mark.parametrize("variable", ["PREFECT_HOME", "PREFECT_PROFILES_PATH"])
def test_profiles_are_read_where_the_environment_says(home, variable):
    write_profiles(home, folder="elsewhere")
    elsewhere = home / "elsewhere"
    os.environ[variable] = str(
        elsewhere if variable == "PREFECT_HOME" else elsewhere / "profiles.toml"
    )

    assert server_url() == "http://work:4200/api"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "active = ",
        'active = "work"',
        'active = ["work"]\n[profiles.work]\n',
        'active = "work"\nprofiles = "none"',
        'active = "work"\n[profiles.work]\nPREFECT_API_URL = ""',
        'active = "work"\n[profiles.work]\nPREFECT_API_URL = 4200',
        "\udcff",
    ],
)
def test_profiles_that_name_no_server_or_are_broken_count_as_none(home, text):
    (home / ".prefect").mkdir()
    (home / ".prefect" / "profiles.toml").write_bytes(text.encode("utf-8", "surrogateescape"))

    assert server_url() is None


def test_no_prefect_overrides_whatever_names_a_server(home):
    write_profiles(home)
    os.environ["PREFECT_API_URL"] = AWAY

    assert use_prefect(False) is False


def test_prefect_is_used_without_a_server_only_if_it_is_asked_for():
    assert use_prefect(True) is True
    assert os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"


def test_what_the_user_set_for_prefect_stays(server):
    os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "true"
    os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{server.server_port}/api"

    assert use_prefect(None) is True
    assert os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] == "true"


@pytest.mark.parametrize("status", [200, 401, 404, 503])
def test_a_server_that_answers_anything_counts_as_there(server, status):
    server.status = status

    check_server(f"http://127.0.0.1:{server.server_port}/api/")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (AWAY, "Connection refused"),
        ("nowhere", "unknown url type"),
        ("http://[", "Invalid IPv6 URL"),
    ],
)
def test_a_server_that_does_not_answer_is_an_error_that_says_what_to_do(url, reason):
    with pytest.raises(PegboardError) as raised:
        check_server(url)

    message = str(raised.value)
    assert reason in message
    assert "hidden" not in message
    assert message.endswith("or run without Prefect: --no-prefect.")


@pytest.mark.parametrize("command", ["build", "plan"])
def test_a_command_whose_server_does_not_answer_ends_with_1_and_publishes_nothing(
    workshop, capsys, command
):
    workshop.servers({"git": [workshop.tool("create_issue")]})
    workshop.configure()
    os.environ["PREFECT_API_URL"] = AWAY

    code = main([command, "-c", str(workshop.folder / "pegboard.toml"), "--quiet", "--json"])

    out, err = capsys.readouterr()
    assert code == 1
    assert err.startswith(
        f"pegboard {command}: The Prefect server at http://127.0.0.1:1/api does not answer: "
    )
    assert "hidden" not in out + err
    assert json.loads(out)["error"]["type"] == "PegboardError"
    assert not (workshop.folder / "board").exists()


def test_a_command_runs_directly_with_no_prefect_though_a_server_is_named(workshop, capsys):
    workshop.servers({"git": [workshop.tool("create_issue")]})
    workshop.configure()
    os.environ["PREFECT_API_URL"] = AWAY

    code = main(
        ["build", "-c", str(workshop.folder / "pegboard.toml"), "--quiet", "--json", "--no-prefect"]
    )

    outcome = json.loads(capsys.readouterr().out)
    assert (code, outcome["outcome"]) == (0, "published")
    assert "prefect" not in outcome["seconds"]
