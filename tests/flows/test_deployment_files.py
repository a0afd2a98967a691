"""prefect.yaml, prefect.containers.yaml and the Dockerfile fit the project, without a server."""

import inspect
import json
import re
import tomllib
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from pegboard import __version__
from pegboard.errors import ConfigurationError
from tasks.settings.configuration import load_configuration

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
INSTRUCTIONS = [line for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
FILES = {
    name: yaml.safe_load((ROOT / name).read_text("utf-8"))
    for name in ("prefect.yaml", "prefect.containers.yaml")
}
DEPLOYMENTS = [deployment for file in FILES.values() for deployment in file["deployments"]]
ENGINES = [deployment for deployment in DEPLOYMENTS if "run" in deployment["parameters"]]
(CONTAINER,) = FILES["prefect.containers.yaml"]["deployments"]
SECRET = re.compile(r"(key|token|secret|password)\w*\s*[=:]\s*\S", re.IGNORECASE)


def arguments(instruction: str) -> list[str]:
    """What follows each instruction of that name in the Dockerfile."""
    lines = [line.partition(" ") for line in INSTRUCTIONS]
    return [rest for name, _, rest in lines if name == instruction]


def project(folder: Path = ROOT) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda row: row["name"])
def test_a_deployment_starts_a_flow_that_exists_with_parameters_that_it_has(deployment):
    module, _, name = deployment["entrypoint"].rpartition(".")
    flow = getattr(import_module(module), name)

    assert flow.name == "reindex"
    assert deployment["parameters"].keys() <= inspect.signature(flow.fn).parameters.keys()


def test_the_run_of_a_deployment_replaces_that_of_the_configuration(tmp_path):
    file = tmp_path / "pegboard.toml"
    file.write_text(
        '[board]\nuri = "board"\n[[indexes]]\nencoder = "hashing/256"\n'
        '[catalogs.acme]\ntype = "mcp-dump"\npath = "tools.json"\n'
        '[run]\nengine = "processes"\nworkers = 7\n'
    )

    assert [row["parameters"]["run"]["engine"] for row in ENGINES] == ["processes", "dask"]
    assert load_configuration(file).run.workers == 7
    for deployment in ENGINES:
        run = deployment["parameters"]["run"]
        assert load_configuration(file, run).run.model_dump(exclude_unset=True) == run
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


def test_the_deployment_in_containers_is_that_of_this_version_and_of_the_images_folder():
    (pull,) = FILES["prefect.containers.yaml"]["pull"]
    variables = CONTAINER["work_pool"]["job_variables"]
    views = files("prefect.server.api.collections_data.views")
    workers = json.loads((views / "aggregate-worker-metadata.json").read_text("utf-8"))

    assert variables["image"] == f"pegboard-project:{__version__}"
    assert f"docker build -t pegboard:{__version__} ." in DOCKERFILE
    assert [step["directory"] for step in pull.values()] == [arguments("WORKDIR")[-1]]
    for kind in ("docker", "kubernetes"):
        template = workers[f"prefect-{kind}"][kind]["default_base_job_configuration"]
        assert variables.keys() <= template["variables"]["properties"].keys()


def test_no_file_of_a_deployment_names_a_registry_or_holds_a_secret():
    for name in ("Dockerfile", *FILES):
        text = (ROOT / name).read_text("utf-8")
        settings = "\n".join(line for line in text.splitlines() if not line.strip().startswith("#"))

        assert "index-url" not in settings
        assert "http" not in settings
        assert not SECRET.search(settings), name
    assert not re.search(r"[\w-]+\.[a-z]{2,}/", "\n".join(INSTRUCTIONS))
