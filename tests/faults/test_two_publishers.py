"""Two publishers of one board at once: one wins, the other says so and changes nothing that readers see."""

import pytest

ROUNDS = 10


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_of_two_publishers_one_wins_and_the_other_says_so(publisher, whole, wait_until):
    one = publisher()
    one.publish(0)
    for number in range(1, ROUNDS + 1):
        first, second = 2 * number - 1, 2 * number
        gate = one.folder / f"gate-{number}"
        children = {one.start(n, gate): n for n in (first, second)}
        for child in children:
            wait_until(lambda child=child: any(event["what"] == "planned" for event in one.events(child)))
        before = one.store.channel()
        gate.touch()  # both planned against the same release; now both write

        ends = {n: one.ended(child) for child, n in children.items()}

        winners = [n for n, (status, _) in ends.items() if status == 0]
        losers = [said for status, said in ends.values() if status != 0]
        assert len(winners) == 1, ends
        assert all("Nothing was" in said for said in losers), losers
        now = one.store.channel()
        assert now.generation == before.generation + 1
        assert now.history[0] == before.release
        whole(one, set(winners))


@pytest.mark.slow
def test_the_loser_of_a_race_publishes_when_it_runs_again(publisher, whole, wait_until):
    one = publisher()
    one.publish(0)
    gate = one.folder / "gate"
    late = one.start(1, gate)
    wait_until(lambda: any(event["what"] == "planned" for event in one.events(late)))
    one.publish(2)
    releases = {release.id for release in one.store.all()}
    gate.touch()

    status, said = one.ended(late)

    assert status == 6, said
    assert {release.id for release in one.store.all()} == releases
    whole(one, {2})
    one.publish(1)
    whole(one, {1})
