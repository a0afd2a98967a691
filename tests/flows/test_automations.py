"""The automations of boards that share a server, without a server."""

import uuid

from flows.prefect.deployments import board_automations
from flows.prefect.names import board_key, board_resource, board_tag, catalog_resource

BOARDS = ("/srv/acme/board", "/srv/other/acme/board", "s3://acme/board")
BLOCK = uuid.UUID(int=1)


def automations(uri, block=BLOCK):
    flows = ("reindex", "evaluate", "prune")
    deployments = {flow: uuid.uuid5(BLOCK, uri + flow) for flow in flows}
    return deployments, board_automations(uri, "acme", deployments, block)


def test_boards_of_one_name_have_keys_tags_and_resources_of_their_own():
    assert board_key("/srv/acme/board").startswith("acme-board-")
    for name in (board_key, board_tag, board_resource):
        assert len({name(uri) for uri in BOARDS}) == len(BOARDS)
    assert board_key("/srv/acme/board/") == board_key("/srv/acme/board")
    hidden = board_key("s3://user:secret@acme/board")
    assert "secret" not in hidden


def test_every_trigger_matches_what_is_of_its_own_board_only():
    for uri in BOARDS:
        deployments, made = automations(uri)
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
