"""Sentences that many tools of one catalog share."""

from pegboard.documents import documents_of, summary_of
from pegboard.records import Agent, Enrichment, Tool
from pegboard.text.boilerplate import boilerplate, sentence_key

AGENT = Agent("kit/git", "kit", "git")
SHARED = "Anyone may use it."


def tools(count, sharing):
    """Return `count` tools, the first `sharing` of which have the same sentence in their
    descriptions.
    """
    return [
        Tool(
            f"kit/git/t{number}",
            "kit",
            AGENT.id,
            f"t{number}",
            f"Does job {number}." + (f" {SHARED}" if number < sharing else ""),
            {"properties": {"at": {"description": f"Place {number}. Case counts."}}},
        )
        for number in range(count)
    ]


def document(tool, shared, enrichment=None):
    ((_, _, (text,)),) = documents_of(tool, AGENT, enrichment or Enrichment(), shared)
    return text


READS = Enrichment(description="Reads it. Also.")


def test_a_sentence_in_more_than_five_tools_and_two_percent_is_boilerplate():
    assert boilerplate(tools(5, 5)) == frozenset()
    assert boilerplate(tools(7, 6)) == {sentence_key(SHARED), sentence_key("Case counts.")}
    assert sentence_key(SHARED) not in boilerplate(tools(400, 8))
    assert sentence_key(SHARED) in boilerplate(tools(400, 9))


def test_documents_omit_boilerplate_unless_it_is_the_only_sentence():
    listed = tools(8, 8)
    shared = boilerplate(listed)
    empty = Tool("kit/git/e", "kit", AGENT.id, "e", f"{SHARED} Case counts.")

    assert document(listed[0], shared) == "t0. Does job 0.\nArguments: at: Place 0."
    assert document(listed[0], ()).count(SHARED) == 1
    assert document(empty, shared) == f"e. {SHARED}"
    assert summary_of(empty, boilerplate=shared) == f"e. {SHARED}"


def test_text_of_an_llm_is_never_omitted_as_boilerplate():
    listed = tools(8, 8)
    enrichment = Enrichment(description=SHARED, arguments={"at": "Case counts."})

    text = document(listed[0], boilerplate(listed), enrichment)

    assert text == f"t0. {SHARED}\nArguments: at: Case counts."


def test_a_summary_is_the_name_and_the_first_sentence():
    tool = Tool("k/a/x", "k", "k/a", "getRecord_v2", "getRecord(a, *, b=1)\n\nGets *it*. More.")
    key = "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e"

    assert summary_of(tool) == "get Record v2. Gets it."
    assert summary_of(tool, enrichment=READS) == "get Record v2. Reads it."
    assert summary_of(tool, ["name"]) == "get Record v2"
    assert summary_of(Tool("k/a/x", "k", "k/a", "___")) == "___"
    assert summary_of(Tool("k/a/x", "k", "k/a", "x", f"Use {key}")) == "x. Use [credential]"
