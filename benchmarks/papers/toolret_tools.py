"""The documentations of ToolRet as records of one form, whatever form each has.

A record has the tool's name, a description (what describes it, and other short texts of the
documentation), its parameters, and an agent: the source in its id (`apigen_tool_272` is of
`apigen`). Where a source has the same name again, the agent gets a number, so that every tool has
its own `agent/name`."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.papers.reading import LeftOut
from catalogs.shared.listing import ListingBuilder
from pegboard.formatting import count_text
from pegboard.schemas.loose import Unusable, loose_object

FILE = "toolret_tools.jsonl"
NAMES = ("name", "api_name", "func_name", "function_name", "tool_name", "title")
DESCRIPTIONS = (
    "description",
    "api_description",
    "func_description",
    "functionality",
    "tool_description",
    "summary",
)
PARAMETERS = (
    "parameters",
    "required_parameters",
    "optional_parameters",
    "api_arguments",
    "arguments",
    "input",
    "inputs",
)
LESS = (
    "method",
    "url",
    "id",
    "example_code",
    "template_response",
    "code",
    "returns",
    "response",
    "output",
    "python_environment_requirements",
)
"""Fields about how a tool is called or what it returned once, not what it is for."""
MAX_NAME = 200
MAX_TEXT = 4_000
"""Characters of a description: an encoder reads about 1,000."""


class ToolRecords:
    """Collects the tools.

    Attributes:
        names: for each id of ToolRet the `agent/name` of its record.
        problems: how records differ from their documentation.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.problems: list[str] = []
        self._records: list[dict[str, Any]] = []
        self._taken: dict[tuple[str, str], int] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row of a file of tools.

        Raises LeftOut if it has no id or no documentation, or the id was added already.
        """
        identity = row.get("id")
        if not isinstance(identity, str | int) or not str(identity).strip():
            raise LeftOut("it has no id")
        identity = str(identity).strip()
        if identity in self.names:
            raise LeftOut(f"there is a tool with the id {identity} already")
        documentation = _decoded(row.get("documentation"))
        if documentation in (None, "", {}):
            raise LeftOut("it has no documentation")
        if not isinstance(documentation, Mapping):
            text = documentation if isinstance(documentation, str) else json.dumps(documentation)
            documentation = {"description": text}
        record = {
            "name": _name(documentation) or identity,
            "description": _description(documentation),
            "parameters": _parameters(documentation),
        }
        agent = re.split(r"_tool(?:_|$)", identity)[0] or "toolret"
        times = self._taken[agent, record["name"]] = self._taken.get((agent, record["name"]), 0) + 1
        record["agent"] = agent if times == 1 else f"{agent} {times}"
        try:
            json.dumps(record, ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError):
            raise LeftOut(
                "its documentation is not valid UTF-8 text, or nested too deeply"
            ) from None
        self._records.append(record)
        self.names[identity] = f"{record['agent']}/{record['name']}"

    def json_lines(self) -> str:
        """The records as JSON lines; parameters of no valid schema move to the description."""
        rejected = self._rejected()
        for at in rejected:
            record = self._records[at]
            documentation = json.dumps(record["parameters"], ensure_ascii=False)
            record["description"], record["parameters"] = (
                f"{record['description']} {documentation}"[:MAX_TEXT],
                None,
            )
        if rejected:
            self.problems.append(
                f"parameters that are no schema were taken as text, of "
                f"{count_text(len(rejected), 'tool')}"
            )
        return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in self._records)

    def _rejected(self) -> list[int]:
        found: list[int] = []
        for at, record in enumerate(self._records):
            builder = ListingBuilder("toolret", Path())
            try:
                schema = loose_object(record["parameters"])
            except (Unusable, RecursionError):
                found.append(at)
                continue
            if builder.tool(builder.agent("a"), "a", where="", input_schema=schema) is None:
                found.append(at)
        return found


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _name(documentation: Mapping[str, Any]) -> str:
    given = next(
        (
            documentation[key]
            for key in NAMES
            if isinstance(documentation.get(key), str) and documentation[key].strip()
        ),
        "",
    )
    return " ".join(given.split())[:MAX_NAME]


def _description(documentation: Mapping[str, Any]) -> str:
    first = [documentation[key] for key in DESCRIPTIONS if isinstance(documentation.get(key), str)]
    others = [
        text
        for key, value in documentation.items()
        if key not in (*DESCRIPTIONS, *PARAMETERS, *LESS)
        for text in _texts(value)
    ]
    name = _name(documentation)
    texts = dict.fromkeys(" ".join(text.split()) for text in (*first, *others))
    return ". ".join(text.rstrip(".") for text in texts if text and text != name)[:MAX_TEXT]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (one for one in value if isinstance(one, str))


def _parameters(documentation: Mapping[str, Any]) -> Any:
    """The parameters of the only field that has some, or of several, the required ones first."""
    given = [_decoded(documentation[key]) for key in PARAMETERS if documentation.get(key)]
    if len(given) <= 1:
        return given[0] if given else None
    if all(isinstance(one, list) for one in given):
        return [item for one in given for item in one]
    return given[0]
