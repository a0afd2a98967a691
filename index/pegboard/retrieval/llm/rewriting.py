"""Rewriting a request before it is searched: typos, shorthand, pronouns and small talk (Toolshed,
section 3.4.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from pegboard.retrieval.llm.condensing import Condense
from pegboard.retrieval.llm.consulting import (
    Question,
    consult,
    show_history,
    show_request,
    whole_request,
)
from pegboard.retrieval.llm.prompting import prompt
from pegboard.retrieval.llm.structured import read_text, text_schema
from pegboard.retrieval.parts import Context, Query


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A transform: an LLM writes the request as one plain statement, with the conversation before
    it in view.

    It stands before a decomposition. Without an LLM, `condense` does what can be done by rules.

    Attributes:
        keep: whether the request is searched as it was asked, too, in the same step. Worth it where
            an LLM may lose something; not where the request says little without the conversation.
        prompts: a folder with a `rewrite.md` of one's own.
    """

    part: ClassVar[str] = "rewrite"
    keep: bool = False
    prompts: str | None = None

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """The queries, with the rewritten request in the place of the request."""
        whole = whole_request(queries, context)
        asked = prompt("rewrite", self.prompts).request(
            text_schema("query"), request=show_request(whole.text), history=show_history(context)
        )
        [text] = await consult(context, [Question(asked, lambda reply: read_text(reply, "query"))])
        if text is None:
            return await Condense().transform(queries, context)
        rewritten = replace(whole, text=text, role="rewrite")
        made: list[Query] = []
        for query in queries:
            if query == whole:
                made += [query, rewritten] if self.keep else [rewritten]
            else:
                made.append(query)
        return made
