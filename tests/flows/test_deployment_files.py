"""prefect.yaml, prefect.containers.yaml and the Dockerfile fit the project, without a server."""

import inspect
import json
import re
import tomllib
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.util import resolve_name
from pathlib import Path

import pytest
import yaml

from pegboard import __version__
from pegboard.errors import ConfigurationError
from tasks.settings.configuration import load_configuration

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
INSTRUCTIONS = [line for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
CONTAINERS = (ROOT / "prefect.containers.yaml").read_text("utf-8")
DEPLOYMENTS = [
    deployment
    for name in ("prefect.yaml", "prefect.containers.yaml")
    for deployment in yaml.safe_load((ROOT / name).read_text("utf-8"))["deployments"]
]
ENGINES = [deployment for deployment in DEPLOYMENTS if "run" in deployment["parameters"]]
SECRET = re.compile(r"(key|token|secret|password)\w*\s*[=:]\s*\S", re.IGNORECASE)


def arguments(instruction: str) -> list[str]:
    """What follows each instruction of that name in the Dockerfile."""
    lines = [line.partition(" ") for line in INSTRUCTIONS]
    return [rest for name, _, rest in lines if name == instruction]


def extras(folder: Path) -> set[str]:
    return set(project(folder)["optional-dependencies"])


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda row: row["name"])
def test_a_deployment_starts_a_flow_that_exists_with_parameters_that_it_has(deployment):
    module, _, name = deployment["entrypoint"].rpartition(".")
    flow = getattr(__import__(resolve_name(module, None), fromlist=[name]), name)

    assert flow.name in ("reindex", "watch", "sweep")
    assert deployment["parameters"].keys() <= inspect.signature(flow.fn).parameters.keys()


def test_there_is_a_deployment_for_each_engine_of_other_processes():
    names = [(row["name"], row["parameters"]["run"]["engine"]) for row in ENGINES]

    assert names == [("processes", "processes"), ("dask", "dask")]


@pytest.mark.parametrize("deployment", ENGINES, ids=lambda row: row["name"])
def test_the_run_of_a_deployment_takes_the_place_of_the_configurations(deployment, tmp_path):
    file = configuration_file(tmp_path)

    settings = load_configuration(file, deployment["parameters"]["run"]).run

    assert load_configuration(file).run.workers == 7
    assert settings.model_dump(exclude_unset=True) == deployment["parameters"]["run"]


def test_a_wrong_run_of_a_deployment_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="engine"):
        load_configuration(configuration_file(tmp_path), {"engine": "spark"})


def configuration_file(folder: Path) -> Path:
    (folder / "tools.json").write_text(json.dumps({"tools": []}))
    file = folder / "pegboard.toml"
    file.write_text(
        '[board]\nuri = "board"\n[[indexes]]\nencoder = "hashing/256"\n'
        '[catalogs.acme]\ntype = "mcp-dump"\npath = "tools.json"\n'
        '[run]\nengine = "processes"\nworkers = 7\n'
    )
    return file


def test_the_image_has_the_python_of_the_project():
    (image,) = arguments("FROM")
    version = re.fullmatch(r"python:(\d+\.\d+)-slim", image)

    assert version, "another image, or one of a named registry"
    assert project(ROOT)["requires-python"] == f">={version[1]}"
    assert f"Programming Language :: Python :: {version[1]}" in project(ROOT)["classifiers"]


def test_the_image_has_all_that_a_wheel_needs_and_nothing_that_does_not_exist():
    copied = {name for line in arguments("COPY") for name in line.split()[:-1]}
    allowed = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]
    needed = packages["build"]["targets"]["wheel"]["packages"]

    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert copied >= {*needed, "index", "pyproject.toml", "constraints.txt"}
    assert copied >= {project(ROOT)["readme"], *project(ROOT)["license-files"]}
    assert {line[1:] for line in allowed if line.startswith("!")} == copied


def test_the_image_installs_extras_that_exist_at_the_pinned_versions():
    (install,) = [line for line in arguments("RUN") if "pip install" in line]
    (chosen,) = [line.removeprefix("EXTRAS=") for line in arguments("ARG")]
    library = re.search(r"\./index\[([\w,]+)\]", install)

    assert "-c constraints.txt" in install
    assert '".[${EXTRAS}]"' in install
    assert set(chosen.split(",")) <= extras(ROOT)
    assert library
    assert set(library[1].split(",")) <= extras(ROOT / "index")
    assert f"pegboard[{library[1]}]" in project(ROOT)["dependencies"]


def test_the_image_starts_a_command_that_exists_as_a_user_without_rights():
    (command,) = arguments("CMD")
    scripts = {point.name for point in entry_points(group="console_scripts")}

    assert json.loads(command)[0] in scripts & project(ROOT / "index")["scripts"].keys()
    assert arguments("ENTRYPOINT") == [], "a work pool's command would be its arguments"
    (user,) = arguments("USER")
    assert user not in ("root", "0")
    assert INSTRUCTIONS.index(f"USER {user}") > max(
        at for at, line in enumerate(INSTRUCTIONS) if line.startswith("RUN ")
    )


def test_the_deployment_in_containers_is_that_of_this_version_and_of_the_images_folder():
    (deployment,) = yaml.safe_load(CONTAINERS)["deployments"]
    (pull,) = yaml.safe_load(CONTAINERS)["pull"]
    image = deployment["work_pool"]["job_variables"]["image"]

    assert image == f"pegboard-project:{__version__}"
    assert f"docker build -t pegboard:{__version__} ." in DOCKERFILE
    (folder,) = (step["directory"] for step in pull.values())
    assert arguments("WORKDIR")[-1] == folder


@pytest.mark.parametrize("kind", ["docker", "kubernetes"])
def test_a_work_pool_of_either_type_has_the_variables_of_the_deployment(kind):
    (deployment,) = yaml.safe_load(CONTAINERS)["deployments"]
    views = files("prefect.server.api.collections_data.views")
    workers = json.loads((views / "aggregate-worker-metadata.json").read_text("utf-8"))
    template = workers[f"prefect-{kind}"][kind]["default_base_job_configuration"]

    variables = template["variables"]["properties"].keys()

    assert deployment["work_pool"]["job_variables"].keys() <= variables


def test_the_blocks_of_the_guide_are_those_of_the_files():
    guide = (ROOT / "docs" / "how-to" / "run-elsewhere.md").read_text("utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    (shown,) = yaml.safe_load(block.replace("*work_pool", "pegboard"))
    (actual,) = [row for row in ENGINES if row["name"] == shown["name"]]

    assert shown["parameters"] == actual["parameters"]
    assert shown["entrypoint"] == actual["entrypoint"]
    assert f"docker build -t pegboard:{__version__} ." in guide
    assert f"docker build -t pegboard-project:{__version__} " in guide
    for row in (*ENGINES, yaml.safe_load(CONTAINERS)["deployments"][0]):
        assert f"prefect deployment run 'reindex/{row['name']}'" in guide


def test_no_file_of_a_deployment_names_a_registry_or_holds_a_secret():
    for name in ("Dockerfile", "prefect.yaml", "prefect.containers.yaml"):
        text = (ROOT / name).read_text("utf-8")
        settings = "\n".join(line for line in text.splitlines() if not line.strip().startswith("#"))

        assert "index-url" not in settings
        assert "http" not in settings
        assert not SECRET.search(settings), name
    assert not re.search(r"[\w-]+\.[a-z]{2,}/", "\n".join(INSTRUCTIONS))
