"""The parameters of the flows, and the image that runs them, without a server."""

import inspect
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import yaml
from prefect.client.schemas.schedules import CronSchedule
from prefect.flows import load_flow_from_entrypoint
from prefect.settings import get_current_settings
from prefect.utilities.callables import parameter_schema

from flows.options import BuildOptions
from flows.prefect.deployments import FLOWS
from flows.prefect.flows import HEARTBEAT_SECONDS, reindex, start_reindex
from pegboard.errors import ConfigurationError
from tasks.settings.configuration import load_configuration

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
INSTRUCTIONS = [line for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
SECRET = re.compile(r"(key|token|secret|password)\w*\s*[=:]\s*\S", re.IGNORECASE)


def arguments(instruction: str) -> list[str]:
    """What follows each instruction of that name in the Dockerfile."""
    lines = [line.partition(" ") for line in INSTRUCTIONS]
    return [rest for name, _, rest in lines if name == instruction]


def project(folder: Path = ROOT) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_deployments_of_prefect_yaml_name_flows_that_take_their_parameters():
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text("utf-8"))["deployments"]

    flows = [
        load_flow_from_entrypoint(row["entrypoint"], use_placeholder_flow=False)
        for row in deployments
    ]

    assert [flow.name for flow in flows] == [flow.name for flow in FLOWS]
    for flow, deployment in zip(flows, deployments, strict=True):
        parameters = flow.validate_parameters(deployment["parameters"])
        assert deployment["parameters"].items() <= parameters.items()
        for schedule in deployment["schedules"]:
            CronSchedule(cron=schedule["cron"], timezone=schedule["timezone"])


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_every_parameter_of_a_flow_has_a_type_a_default_and_a_description(flow):
    schema = parameter_schema(flow)

    assert schema.required == []
    for name, part in schema.properties.items():
        assert part.get("description"), name
        assert {"type", "anyOf", "allOf", "$ref"} & part.keys(), name


def test_every_build_option_is_a_parameter_of_reindex_with_the_same_default():
    parameters = inspect.signature(reindex.fn).parameters

    defaults = {option.name: option.default for option in fields(BuildOptions)}
    assert defaults.items() <= {name: row.default for name, row in parameters.items()}.items()
    assert parameters.keys() - defaults.keys() == {"config", "run"}


def test_the_parameter_run_replaces_the_table_of_the_configuration(tmp_path):
    file = tmp_path / "pegboard.toml"
    file.write_text(
        '[board]\nuri = "board"\n[[indexes]]\nencoder = "hashing/256"\n'
        '[catalogs.acme]\ntype = "mcp-dump"\npath = "tools.json"\n'
        '[run]\nengine = "processes"\nworkers = 7\n'
    )

    assert load_configuration(file).run.workers == 7
    assert load_configuration(file, {"engine": "processes"}).run.workers is None
    with pytest.raises(ConfigurationError, match="engine"):
        load_configuration(file, {"engine": "spark"})


def test_the_image_has_the_python_the_files_and_the_extras_of_the_project():
    (image,) = arguments("ARG")
    (install,) = [line for line in arguments("RUN") if "pip install" in line]
    copied = {name for line in arguments("COPY") for name in line.split()[:-1]}
    allowed = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    packages = tools["hatch"]["build"]["targets"]["wheel"]["packages"]
    library = re.search(r"\./index\[([\w,]+)\]", install)[1]

    assert arguments("FROM") == ["${PYTHON_IMAGE}"]
    assert image == f"PYTHON_IMAGE=python:{project()['requires-python'].removeprefix('>=')}-slim"
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert copied >= {*packages, "index", "pyproject.toml", "constraints.txt"}
    assert copied >= {project()["readme"], *project()["license-files"]}
    assert {line[1:] for line in allowed if line.startswith("!")} == copied
    assert "-c constraints.txt" in install
    assert install.endswith(" .")
    assert f"pegboard[{library}]" in project()["dependencies"]


def test_the_image_names_no_registry_and_holds_no_secret():
    settings = "\n".join(INSTRUCTIONS)

    assert "index-url" not in settings
    assert "http" not in settings
    assert not SECRET.search(settings)
    assert not re.search(r"[\w-]+\.[a-z]{2,}/", settings)


def test_a_run_of_the_command_sends_heartbeats_as_often_as_a_deployed_one(workshop, monkeypatch):
    """The automation that ends lost runs takes it for one of its board's."""
    frequencies = []

    def run_flow(*_, **__):
        frequencies.append(get_current_settings().flows.heartbeat_frequency)

    monkeypatch.setattr("flows.prefect.flows.get_client", MagicMock())
    monkeypatch.setattr("flows.prefect.flows.run_flow", run_flow)

    start_reindex(workshop.configure(), BuildOptions())

    assert frequencies == [HEARTBEAT_SECONDS]
