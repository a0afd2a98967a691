"""What the watch takes for a change."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pegboard.store.releases import Release, ReleaseStore
from tasks.plan import SourceChange, compare_with_source
from tasks.settings.configuration import load_configuration
from tasks.snapshot import take_snapshot

TOOLS = [
    {"name": "add", "description": "Add two numbers."},
    {"name": "weather", "description": "The weather."},
]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.toml"
    path.write_text(
        '[board]\nuri = "board"\n[catalogs.acme]\ntype = "mcp-dump"\npath = "tools.json"\n'
    )
    write(path, TOOLS)
    return path


def write(config: Path, tools: list[dict[str, str]]) -> None:
    (config.parent / "tools.json").write_text(json.dumps({"tools": tools}))


def publish(config: Path) -> None:
    """A release of what the source says now, as far as the watch looks at it."""
    configuration = load_configuration(config)
    snapshot = take_snapshot(configuration, "acme")
    store = ReleaseStore(configuration.uri)
    store.create()
    manifest = {"catalogs": {"acme": {"snapshot": snapshot.digest}}}
    store.add(Release(snapshot.digest[:12], snapshot.digest, 1, datetime.now(UTC), {}, manifest))


def change(config: Path) -> SourceChange:
    return compare_with_source(load_configuration(config), "acme")


def test_a_catalog_that_was_never_listed_has_changed(config):
    assert change(config) == SourceChange("acme", changed=True, tools=2, rejected=0, problems=())


def test_a_published_catalog_has_not_changed_until_its_source_does(config):
    publish(config)
    assert not change(config).changed

    write(config, [*TOOLS, {"name": "send_mail"}])
    assert change(config).changed


def test_looking_for_a_change_stores_nothing(config):
    change(config)

    assert sorted(path.name for path in config.parent.iterdir()) == ["pegboard.toml", "tools.json"]


def test_a_snapshot_that_was_stored_and_not_published_is_still_a_change(config):
    publish(config)
    write(config, [*TOOLS, {"name": "send_mail"}])
    take_snapshot(load_configuration(config), "acme")

    assert change(config).changed


def test_a_source_that_went_back_to_what_an_older_release_has_is_a_change(config):
    publish(config)
    write(config, TOOLS[:1])
    publish(config)
    write(config, TOOLS)

    assert change(config).changed


def test_a_source_that_fails_is_said_and_is_no_change(config):
    publish(config)
    (config.parent / "tools.json").write_text("{")

    found = change(config)

    assert (found.changed, found.tools) == (False, 2)
    assert "tools.json" in found.problems[0]


def test_a_source_that_failed_from_the_beginning_is_no_change(config):
    (config.parent / "tools.json").unlink()

    found = change(config)

    assert (found.changed, found.tools, len(found.problems)) == (False, 0, 1)


def test_rejected_records_alone_are_no_change(config):
    publish(config)
    write(config, [*TOOLS, {"description": "It has no name."}])

    found = change(config)

    assert (found.changed, found.rejected) == (False, 1)
