"""The automations of boards that share a server, without a server."""

import uuid
from datetime import UTC, datetime, timedelta

from prefect.client.schemas.objects import FlowRun

from flows.prefect.deployments import board_automations
from flows.prefect.names import board_key, board_resource, board_tag, catalog_resource
from flows.prefect.turns import started_before

BOARDS = ("/srv/acme/board", "/srv/other/acme/board", "s3://acme/board")
BLOCK = uuid.UUID(int=1)


def automations(uri, block=BLOCK, *, watched=False):
    flows = ("reindex", "evaluate", "prune", "watch")
    deployments = {flow: uuid.uuid5(BLOCK, uri + flow) for flow in flows}
    return deployments, board_automations(uri, "acme", deployments, block, watched=watched)


def test_boards_of_one_name_have_keys_tags_and_resources_of_their_own():
    assert board_key("/srv/acme/board").startswith("acme-board-")
    for name in (board_key, board_tag, board_resource):
        assert len({name(uri) for uri in BOARDS}) == len(BOARDS)
    assert board_key("/srv/acme/board/") == board_key("/srv/acme/board")
    hidden = board_key("s3://user:secret@acme/board")
    assert "secret" not in hidden


def test_every_trigger_matches_what_is_of_its_own_board_only():
    for uri in BOARDS:
        deployments, made = automations(uri, watched=True)
        own = {board_resource(uri), board_resource(uri) + ".*", f"prefect.tag.{board_tag(uri)}"}
        own |= {f"prefect.deployment.{key}" for key in deployments.values()}
        for automation in made:
            trigger = automation.trigger.model_dump(mode="json")
            specifications = [trigger["match"], *trigger["match_related"]]
            texts = [text for part in specifications for text in part.values()]
            named = {text for part in texts for text in ([part] if isinstance(part, str) else part)}
            assert named & own, automation.name
            assert not [text for text in named if text.startswith("pegboard.") and text not in own]


def test_the_trigger_takes_the_catalog_from_the_resource_and_nothing_from_a_payload():
    _, (start, *_) = automations(BOARDS[0])

    resources = start.trigger.model_dump(mode="json")["match"]["prefect.resource.id"]
    assert resources == [board_resource(BOARDS[0]), board_resource(BOARDS[0]) + ".*"]
    assert catalog_resource(BOARDS[0], "github").startswith(resources[0])
    (action,) = start.actions
    assert action.parameters.keys() == {"catalog"}
    assert "payload" not in action.parameters["catalog"]


def test_a_run_has_started_and_ended_though_the_events_of_its_states_come_late():
    _, (_, silent, stuck) = automations(BOARDS[0], None)

    assert "pegboard.run.ended" in silent.trigger.expect
    assert "prefect.flow-run.heartbeat" in stuck.trigger.expect


def test_a_watch_that_was_lost_or_is_over_starts_again_at_once_and_the_next_time_after_a_minute():
    deployments, (*_, again) = automations(BOARDS[0], None, watched=True)

    assert again.name == "pegboard acme: a watch that ended starts again"
    assert again.trigger.expect == {"prefect.flow-run.Crashed", "prefect.flow-run.Completed"}
    (related,) = again.trigger.model_dump(mode="json")["match_related"]
    assert related["prefect.resource.id"] == f"prefect.deployment.{deployments['watch']}"
    assert (again.trigger.threshold, again.trigger.within) == (1, timedelta(minutes=1))
    assert [action.deployment_id for action in again.actions] == [deployments["watch"]]


def test_without_a_notification_block_there_are_no_alerts_and_a_held_release_alerts_by_its_event():
    _, silent = automations(BOARDS[0], None)
    _, alerting = automations(BOARDS[0])

    assert len(silent) == 3
    alerts = {row.name.partition(": ")[2]: row for row in alerting[3:]}
    assert [*alerts] == ["a source failed", "a release is held", "a run failed"]
    assert alerts["a release is held"].trigger.expect == {"pegboard.release.held"}
    assert "prefect.flow-run.Held" not in alerts["a run failed"].trigger.expect
    for alert in alerts.values():
        assert [action.block_document_id for action in alert.actions] == [BLOCK]


def test_of_two_runs_that_start_at_once_one_is_the_older():
    first, second, earlier = (uuid.UUID(int=number) for number in range(3))
    runs = [
        FlowRun(id=key, flow_id=BLOCK, start_time=datetime(2026, 1, day, tzinfo=UTC))
        for key, day in ((second, 2), (first, 2), (earlier, 1))
    ]

    older = {run: [row.id for row in started_before(run, runs)] for run in (first, second, earlier)}

    assert older == {earlier: [], first: [earlier], second: [first, earlier]}
    assert started_before(earlier, runs[:2]) == []
