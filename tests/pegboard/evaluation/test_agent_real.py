"""The evaluation with a real agent: 135M parameters on loopback, which calls hardly anything right.
What it says is read, scored and kept.
"""

import json

import pytest

from pegboard.cli.main import main

pytestmark = [
    pytest.mark.slow,
    # pydantic says so while LiteLLM defines its types; it concerns nothing that is used here.
    pytest.mark.filterwarnings(
        "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
    ),
]

GOLDEN = [
    ("what will the weather be in Oslo?", "get_forecast", {"city": "Oslo"}),
    ("convert 30 dollars to yen", "convert_currency", {"amount": 30, "to": "JPY"}),
]


def test_what_a_real_agent_says_is_scored_and_kept(local_llm, board_uri, tmp_path, capsys):
    golden = tmp_path / "golden.jsonl"
    golden.write_text(
        "".join(
            json.dumps(
                {"query": query, "tools": [tool], "calls": [{"tool": tool, "arguments": arguments}]}
            )
            + "\n"
            for query, tool, arguments in GOLDEN
        )
    )
    fixed = "--tools 1,3 -k 1..3 --reply-tokens 60 --concurrency 1 --timeout 200 --price 1,1 --json"
    options = {
        "--board": board_uri,
        "--model": "hosted_vllm/smollm2",
        "--api-base": local_llm,
        "--out": str(tmp_path / "out"),
    }
    words = [word for option in options.items() for word in option]

    assert main(["eval-agent", str(golden), *words, *fixed.split()]) == 0

    result = json.loads(capsys.readouterr().out)
    kept = [
        json.loads(line)
        for line in (tmp_path / "out" / "replies.jsonl").read_text("utf-8").splitlines()
    ]
    # This model's server passes over tools, so they stand in the prompt.
    assert result["calling"] == "prompt"
    assert len(kept) == 1 + 4
    assert all(one["prompt_tokens"] > 0 and one["counted"] for one in kept)
    assert all(0 <= row["value"] <= 1 for row in result["agent"])
    assert [(row["tools"], row["answered"]) for row in result["calls"]] == [(1, 2), (3, 2)]
    cut = sum(one["finish_reason"] == "length" for one in kept if one["calling"] == "prompt")
    assert sum(row["cut_off"] for row in result["calls"]) == cut
    assert [row["interpolated"] for row in result["expected"]] == [False, True, False]
    assert result["spent_usd"] > 0
