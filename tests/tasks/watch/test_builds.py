"""When a watch builds, and what, with real files and recorded builds."""

import anyio
import pytest

from pegboard.errors import ConfigurationError
from tasks.watch import loop
from tasks.watch.loop import BuildResult
from tests.tasks.watch.conftest import until


def test_a_changed_file_builds_its_catalog_only(trial):
    trial.files("a", "b")

    async def scenario():
        async with trial.watching():
            trial.write("b.json", "better")
            await until(lambda: len(trial.builds) == 2)

    anyio.run(scenario)

    assert trial.builds == [["a", "b"], ["b"]]


def test_a_file_that_is_only_touched_builds_nothing(trial):
    trial.files("a", "b")

    async def scenario():
        async with trial.watching():
            trial.write("a.json", "a")
            await anyio.sleep(0.2)
            trial.write("b.json", "better")
            await until(lambda: len(trial.builds) == 2)

    anyio.run(scenario)

    assert trial.builds == [["a", "b"], ["b"]]


def test_a_burst_of_changes_is_one_build(trial, monkeypatch):
    monkeypatch.setattr(loop, "SETTLE_SECONDS", 2.0)
    trial.files("a", "b", "c")

    async def scenario():
        async with trial.watching():
            for number in range(20):
                trial.write("ab"[number % 2] + ".json", f"version{number}")
            await until(lambda: len(trial.builds) == 2)
            trial.write("c.json", "better")
            await until(lambda: len(trial.builds) == 3)

    anyio.run(scenario)

    assert trial.builds == [["a", "b", "c"], ["a", "b"], ["c"]]


def test_changes_during_a_build_are_taken_up_after_it(trial):
    trial.files("a", "b")

    async def scenario():
        async with trial.watching():
            seen = len(trial.texts("changed"))

            async def change_meanwhile(catalogs):
                if catalogs == ["a"]:
                    trial.write("b.json", "better")
                    await until(lambda: len(trial.texts("changed")) == seen + 2)
                return BuildResult("published")

            trial.answer = change_meanwhile
            trial.write("a.json", "better")
            await until(lambda: len(trial.texts("built")) == 3)

    anyio.run(scenario)

    assert trial.builds == [["a", "b"], ["a"], ["b"]]


def test_a_file_that_changes_while_it_is_built_is_built_again(trial):
    trial.files("a")

    async def scenario():
        async with trial.watching():

            async def change_again(catalogs):
                trial.answer = succeed
                trial.write("a.json", "best")
                await until(lambda: len(trial.texts("changed")) == seen + 2)
                return BuildResult("published")

            seen = len(trial.texts("changed"))
            succeed, trial.answer = trial.answer, change_again
            trial.write("a.json", "better")
            await until(lambda: len(trial.texts("built")) == 3)

    anyio.run(scenario)

    assert trial.builds == [["a"]] * 3


@pytest.mark.parametrize("how", ["fails", "raises"])
def test_a_build_that_fails_is_repeated_and_does_not_end_the_watch(trial, monkeypatch, how):
    monkeypatch.setattr(loop, "RETRY_SECONDS", 0.05)
    trial.files("a", "b")

    async def scenario():
        async with trial.watching():

            async def fail(catalogs):
                if len(trial.builds) < 4:
                    if how == "raises":
                        raise RuntimeError("no memory")
                    return BuildResult("no disk", succeeded=False, exit_code=4)
                return BuildResult("published")

            trial.answer = fail
            trial.write("a.json", "better")
            await until(lambda: len(trial.texts("built")) == 2)

    anyio.run(scenario)

    assert trial.builds == [["a", "b"], ["a"], ["a"], ["a"]]
    assert len(trial.texts("failed")) == 2


def test_a_source_that_could_not_be_listed_is_tried_again_alone(trial, monkeypatch):
    monkeypatch.setattr(loop, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(loop, "SETTLE_SECONDS", 2.0)
    trial.files("a", "b")

    async def scenario():
        async with trial.watching():

            async def fail_once(catalogs):
                failed = {"b": "status 503"} if catalogs == ["a", "b"] else {}
                return BuildResult("published", failed=failed)

            trial.answer = fail_once
            trial.write("a.json", "better")
            trial.write("b.json", "better")
            await until(lambda: len(trial.builds) == 3)

    anyio.run(scenario)

    assert trial.builds == [["a", "b"], ["a", "b"], ["b"]]


def test_a_failed_build_waits_for_its_turn_but_not_for_a_change(trial):
    trial.files("a", "b")

    async def scenario():
        async with trial.watching():

            async def fail_once(catalogs):
                return BuildResult("no disk", succeeded=len(trial.builds) != 2)

            trial.answer = fail_once
            trial.write("a.json", "better")
            await until(lambda: len(trial.texts("failed")) == 1)
            trial.write("b.json", "better")
            await until(lambda: len(trial.builds) == 3)
            trial.write("a.json", "best")
            await until(lambda: len(trial.builds) == 4)

    anyio.run(scenario)

    assert trial.builds == [["a", "b"], ["a"], ["b"], ["a"]]


def test_files_and_folders_that_appear_are_noticed(trial):
    trial.files("a")
    trial.configure(
        '[catalogs.many]\ntype = "functions"\npath = "many/*.json"\n'
        '[catalogs.skills]\ntype = "skills"\npath = "skills"\n'
    )
    trial.write("many/one.json", "one")
    (trial.folder / "skills/pack").mkdir(parents=True)
    (trial.folder / "skills/pack/SKILL.md").write_text("---\nname: pack\n---\n")

    async def scenario():
        async with trial.watching():
            trial.write("many/two.json", "two")
            await until(lambda: len(trial.builds) == 2)
            (trial.folder / "skills/travel").mkdir()
            (trial.folder / "skills/travel/SKILL.md").write_text("---\nname: travel\n---\n")
            await until(lambda: len(trial.builds) == 3)
            (trial.folder / "many/two.json").unlink()
            await until(lambda: len(trial.builds) == 4)

    anyio.run(scenario)

    assert trial.builds == [["many", "skills"], ["many"], ["skills"], ["many"]]


def test_a_folder_that_is_made_later_is_noticed(trial):
    trial.write("a.json", "a")
    trial.configure(
        '[catalogs.a]\ntype = "functions"\npath = "a.json"\n'
        '[catalogs.later]\ntype = "functions"\npath = "later/*.json"\n'
    )

    async def scenario():
        async with trial.watching(interval=0.2):
            trial.write("later/one.json", "one")
            await until(lambda: len(trial.builds) == 2)

    anyio.run(scenario)

    assert trial.builds == [["a", "later"], ["later"]]


def test_a_changed_configuration_is_read_again_and_all_catalogs_are_built(trial):
    trial.files("a")

    async def scenario():
        async with trial.watching():
            trial.files("a", "b")
            await until(lambda: len(trial.builds) == 2)
            trial.write("b.json", "better")
            await until(lambda: len(trial.builds) == 3)

    anyio.run(scenario)

    assert trial.builds == [["a"], ["a", "b"], ["b"]]
    assert trial.texts("reloaded") == [str(trial.file)]


def test_an_invalid_configuration_is_reported_and_nothing_is_built_until_it_is_valid(trial):
    trial.files("a")

    async def scenario():
        async with trial.watching():
            trial.configure('[catalogs.a]\ntype = "functons"\n')
            await until(lambda: trial.texts("invalid"))
            trial.write("a.json", "better")
            trial.configure('[catalogs.a]\ntype = "functions"\npath = "a.json"\n')
            await until(lambda: len(trial.texts("built")) == 2)

    anyio.run(scenario)

    kinds = [event.kind for event in trial.events]
    assert kinds.index("invalid") < kinds.index("reloaded")
    assert kinds[: kinds.index("reloaded")].count("building") == 1
    assert "functons" in trial.texts("invalid")[0]
    assert "Nothing is built until it is correct." in trial.texts("invalid")[0]


def test_an_invalid_configuration_at_the_start_is_an_error(trial):
    trial.configure("")

    with pytest.raises(ConfigurationError, match="catalogs"):
        anyio.run(trial.watch().run)


def test_a_watch_that_starts_again_builds_what_changed_meanwhile(trial):
    trial.files("a", "b")

    async def first():
        async with trial.watching():
            pass

    anyio.run(first)
    trial.write("b.json", "better")
    anyio.run(first)

    assert trial.builds == [["a", "b"], ["b"]]


def test_once_builds_what_changed_and_returns_the_exit_code(trial):
    trial.files("a", "b")

    async def hold(catalogs):
        return BuildResult("held", exit_code=8)

    codes = [anyio.run(trial.watch().once), anyio.run(trial.watch().once)]
    trial.write("a.json", "better")
    trial.answer = hold
    codes += [anyio.run(trial.watch().once), anyio.run(trial.watch().once)]

    assert trial.builds == [["a", "b"], ["a"]]
    assert codes == [0, 0, 8, 0]
    assert len(trial.texts("unchanged")) == 2


def test_what_a_failed_build_did_not_take_up_is_due_after_a_restart(trial):
    trial.files("a", "b")

    async def fail(catalogs):
        return BuildResult("no disk", succeeded=False, exit_code=4)

    succeed, trial.answer = trial.answer, fail
    assert anyio.run(trial.watch().once) == 4
    trial.answer = succeed
    assert anyio.run(trial.watch().once) == 0

    assert trial.builds == [["a", "b"]] * 2


def test_damaged_looks_are_reported_and_everything_is_built(trial):
    trial.files("a")
    anyio.run(trial.watch().once)
    looks = trial.folder / "board/lake/watch/looks.json"
    looks.write_text(looks.read_text("utf-8").replace("digest", "digits"), "utf-8")

    assert anyio.run(trial.watch().once) == 0

    assert trial.builds == [["a"], ["a"]]
    assert len(trial.texts("failed")) == 1
