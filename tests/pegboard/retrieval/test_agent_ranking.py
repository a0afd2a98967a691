from pegboard.retrieval.find_agents import (
    AgentEvidence,
    EntityRankings,
    RankedAgent,
    rank_agents,
    ranked_entities,
)
from pegboard.search.ranking import ScoredTool


def ranked(**scores: float) -> list[ScoredTool]:
    """A ranking; `git_log` is the tool `a/git/log`, `git` the agent `a/git`."""
    rows = [
        ScoredTool("a/" + name.replace("_", "/"), score, "document")
        for name, score in scores.items()
    ]
    return sorted(rows, key=lambda row: (-row.score, row.tool))


def agents(found: list[EntityRankings], k: int = 5) -> list[str]:
    return [one.agent.removeprefix("a/") for one in rank_agents(found, k)]


def test_an_agent_is_found_by_its_best_tool_or_by_itself_whichever_is_nearer():
    found = EntityRankings(
        {"vector": ranked(git_log=0.7, git_diff=0.6, mail_send=0.2)},
        {"vector": ranked(mail=0.5, git=0.4)},
    )

    assert rank_agents([found], 5) == [
        RankedAgent("a/git", 0.7, (AgentEvidence(0, 1, 0.7, "a/git/log"),)),
        RankedAgent("a/mail", 0.5, (AgentEvidence(0, 3, 0.5, None),)),
    ]


def test_without_a_table_of_agents_the_tools_decide_and_the_other_way_round():
    assert agents([EntityRankings({"text": ranked(git_log=3.0, mail_send=2.0)})]) == ["git", "mail"]
    assert agents([EntityRankings({}, {"text": ranked(mail=3.0)})]) == ["mail"]
    assert agents([EntityRankings({"vector": [], "text": []}, {"vector": [], "text": []})]) == []
    assert agents([]) == []


def test_hybrid_scores_are_scaled_over_tools_and_agents_together():
    """Scaled in each table alone, the far agent `ci` would get the score 1 of the near tool
    `git/log`.
    """
    found = EntityRankings(
        {"vector": ranked(git_log=0.8, mail_send=0.5), "text": ranked(git_log=9.0, mail_send=5.0)},
        {"vector": ranked(ci=0.1), "text": ranked(ci=1.0)},
    )

    assert agents([found]) == ["git", "mail", "ci"]
    scores = {row.tool: row.score for row in ranked_entities(found)}
    assert scores["a/git/log"] == 1.0
    assert scores["a/ci"] < scores["a/mail/send"]


def test_every_step_gets_its_first_agent_before_any_gets_its_second():
    first = EntityRankings({"vector": ranked(git_log=0.9, ci_run=0.8)}, step=1)
    second = EntityRankings({"vector": ranked(mail_send=0.3, ci_run=0.2)}, step=2)

    assert agents([first, second]) == ["git", "mail", "ci"]


def test_an_agent_that_several_steps_find_keeps_the_evidence_of_each_best_first():
    first = EntityRankings({"vector": ranked(ci_run=0.5)}, step=1)
    second = EntityRankings({"vector": ranked(mail_send=0.9, ci_log=0.6)}, step=2)

    (ci,) = (one for one in rank_agents([first, second], 5) if one.agent == "a/ci")

    assert ci == RankedAgent(
        "a/ci", 0.6, (AgentEvidence(2, 2, 0.6, "a/ci/log"), AgentEvidence(1, 1, 0.5, "a/ci/run"))
    )
