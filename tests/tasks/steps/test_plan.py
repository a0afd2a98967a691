"""The plan: what a run will do against what is live."""

import shutil

import pytest

from pegboard.errors import SourceError


def counts(plan):
    return len(plan.new), plan.changed, plan.removed, plan.unchanged


def test_all_tools_are_new_on_an_empty_board_and_unchanged_once_live(workshop):
    configuration = workshop.full()

    first = workshop.run(configuration, "plan").plan
    release = workshop.run(configuration).release
    second = workshop.run(configuration, "plan").plan
    canary = workshop.run(configuration, "plan", channel="canary").plan

    assert (first.live, first.generation, counts(first)) == (None, 0, (14, (), (), 0))
    assert first.texts == {"full": (38, 32), "fine": (58, 32)}  # equal ones are encoded once
    assert (second.live, second.generation, counts(second)) == (release.id, 1, (0, (), (), 14))
    assert second.texts == {"full": (38, 0), "fine": (58, 0)}
    assert (canary.live, canary.generation, counts(canary)) == (None, 0, (14, (), (), 0))


def test_a_plan_distinguishes_new_changed_removed_and_unchanged_tools(workshop):
    tool = workshop.tool
    first = workshop.publish(
        {"git": [tool("same"), tool("other", "Before."), tool("gone")]}
    ).release
    workshop.servers(
        {"git": [tool("same"), tool("other", "After."), tool("fresh")], "shop": [tool("fresh")]}
    )

    plan = workshop.run(workshop.configure(), "plan").plan

    assert plan.to_dict() == {
        "channel": "live",
        "live": first.id,
        "new": ["kit/git/fresh", "kit/shop/fresh"],
        "changed": ["kit/git/other"],
        "removed": ["kit/git/gone"],
        "unchanged": 1,
        "withdrawn": [],
        "texts": {
            "full": {"documents": 10, "to_encode": 3}
        },  # the two fresh ones say the same, and the shop is new
        "changes": {
            "kit/git/other": {
                "description": {"old": "Before.", "new": "After.", "added": (), "removed": ()}
            }
        },
    }


def test_a_failed_first_run_publishes_nothing_and_the_next_run_is_a_first_run(
    workshop,
):
    configuration = workshop.configure()

    with pytest.raises(
        SourceError,
        match=r"No source could be read, so nothing is published\.\n  - kit: .*servers\.json",
    ):
        workshop.run(configuration)

    assert workshop.publish({"git": [workshop.tool("one")]}).plan.new == ("kit/git/one",)


def test_a_first_run_whose_records_are_all_rejected_publishes_nothing(workshop):
    workshop.servers({"git": [{"description": "no name"}] * 7})

    with pytest.raises(
        SourceError,
        match=r"(?s)No source lists a usable tool \(7 records rejected\).*git\.tools\[1\]: .*"
        r"no name.*\.\.\. and 2 more",
    ):
        workshop.run(workshop.configure())

    assert workshop.publish({"git": [workshop.tool("one")]}).plan.new == ("kit/git/one",)


def test_published_tools_remain_if_the_lake_is_lost_and_their_source_fails(workshop):
    configuration = workshop.full()
    live = workshop.run(configuration).release
    shutil.rmtree(f"{workshop.uri}/lake")
    (workshop.folder / "servers.json").unlink()

    with pytest.raises(
        SourceError,
        match=r"8 published tools would be lost.*kit/git/create_issue.*\n  - kit: .*servers\.json",
    ):
        workshop.run(configuration)
    assert workshop.store.channel().release == live.id

    workshop.servers({"git": [workshop.tool("one")]})
    assert len(workshop.run(configuration).plan.removed) == 8
