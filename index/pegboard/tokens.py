"""Estimates the number of tokens of a text in a prompt by its length, without a tokenizer.

Measured with OpenAI's cl100k on the 9,028 tools of seven public catalogs, each as compact JSON in
OpenAI's form: 4.30 (LiveMCPBench) to 5.00 (UltraTool) UTF-8 bytes a token over a whole catalog, 4.7
over most. JSON with blanks behind `:` and `,` has 3.6 to 4.1 and is not what is sent. Bytes instead
of characters, since Chinese text has about one token a character: three bytes.

A single tool may have more tokens than its length suggests: 0.09 % have fewer than 3 bytes a token,
the least is 2.3. Limits on money therefore take 3 and round up.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from math import ceil
from typing import TYPE_CHECKING

from pegboard.hits import Descriptions, Hit, as_openai_tools, as_toon
from pegboard.naming import valid_name

if TYPE_CHECKING:
    from pegboard.search.loaded import LoadedRelease

BYTES_PER_TOKEN = 4.7
FEWEST_BYTES_PER_TOKEN = 3


def estimate_tokens(text: str) -> float:
    """Return the expected number of tokens of English text or compact JSON."""
    return len(text.encode()) / BYTES_PER_TOKEN


def token_bound(*texts: str) -> int:
    """Return how many tokens texts have at most: for what is reserved from a budget."""
    return ceil(sum(len(text.encode()) for text in texts) / FEWEST_BYTES_PER_TOKEN)


def prompt_tokens(loaded: "LoadedRelease", tools: Collection[str]) -> Mapping[str, float]:
    """Return about how many prompt tokens each tool of a release takes in OpenAI's form, by id."""
    return {
        tool.id: definition_tokens(Hit(tool, loaded.agents[tool.agent], 0.0, {}))
        for tool in loaded.tools(list(tools)).values()
    }


def definition_tokens(hit: Hit, descriptions: Descriptions = "catalog") -> float:
    """Return about how many prompt tokens a tool's definition takes in OpenAI's form."""
    shown = as_openai_tools({valid_name(hit.tool.name): hit}, descriptions)[0]
    return estimate_tokens(json.dumps(shown, ensure_ascii=False, separators=(",", ":")))


def toon_tokens(hit: Hit) -> float:
    """Return about how many prompt tokens a tool's definition takes as TOON, without the line that
    an answer begins with.
    """
    _, _, definition = as_toon({valid_name(hit.tool.name): hit}).partition("\n")
    return estimate_tokens(definition)


def within_tokens(
    hits: Iterable[Hit], max_tokens: float, descriptions: Descriptions = "catalog"
) -> tuple[list[Hit], list[Hit]]:
    """Return the hits whose definitions fit into `max_tokens` together, best first, and the others.

    A hit that does not fit is left out; smaller ones behind it may still fit.
    """
    fitting: list[Hit] = []
    others: list[Hit] = []
    for hit in hits:
        tokens = definition_tokens(hit, descriptions)
        if tokens <= max_tokens:
            max_tokens -= tokens
            fitting.append(hit)
        else:
            others.append(hit)
    return fitting, others
