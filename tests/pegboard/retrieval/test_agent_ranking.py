from pegboard.ranking import ScoredTool
from pegboard.retrieval.find_agents import (
    Evidence,
    rank_agents,
    rank_entities,
    ranked_entities,
)


def ranked(**scores: float) -> list[ScoredTool]:
    """A ranking; `git_log` is the tool `a/git/log`, `git` the agent `a/git`."""
    rows = [ScoredTool("a/" + name.replace("_", "/"), score) for name, score in scores.items()]
    return sorted(rows, key=lambda row: (-row.score, row.tool))


def agents(*found: list[ScoredTool]) -> list[str]:
    return [best.agent.removeprefix("a/") for best, *_ in rank_agents(found, 5)]


def test_an_agent_is_found_by_its_best_tool_or_by_itself_whichever_is_nearer():
    tools = ranked(git_log=0.7, git_diff=0.6, mail_send=0.2)
    own = ranked(mail=0.5, git=0.4)

    assert rank_agents([ranked_entities([tools, own])], 5) == [
        [Evidence("a/git/log", 0, 1, 0.7)],
        [Evidence("a/mail", 0, 3, 0.5)],
    ]
    assert agents() == agents([]) == []


def test_hybrid_scores_are_scaled_over_tools_and_agents_together():
    """Scaled in each table alone, the far agent `ci` would get the score 1 of the near tool
    `git/log`.
    """
    found = ranked_entities(
        [ranked(git_log=0.8, mail_send=0.5), ranked(ci=0.1)],
        [ranked(git_log=9.0, mail_send=5.0), ranked(ci=1.0)],
    )

    assert agents(found) == ["git", "mail", "ci"]
    scores = {row.tool: row.score for row in found}
    assert scores["a/git/log"] == 1.0
    assert scores["a/ci"] < scores["a/mail/send"]


def entities(*rankings: list[ScoredTool], k: int = 10) -> list[str]:
    return [best.entity.removeprefix("a/") for best in rank_entities(rankings, k)]


def test_an_agent_that_comes_before_its_tools_stands_in_their_place():
    found = ranked(git=0.9, git_log=0.8, mail_send=0.7, mail=0.6, git_diff=0.5, mail_read=0.4)

    assert entities(found) == ["git", "mail/send", "mail/read"]
    assert entities(found, k=2) == ["git", "mail/send"]
    assert entities() == entities([]) == []


def test_each_step_has_its_first_tool_or_agent_before_any_has_its_second():
    first = ranked(git=0.9, ci=0.8, mail=0.2)
    second = ranked(mail_send=0.5, git_log=0.4, mail=0.3)

    assert entities(first, second) == ["git", "mail/send", "ci"]
    assert [best.step for best in rank_entities([first, second], 3)] == [1, 2, 1]
