"""A peer's process: tools and requests in, rankings out, as JSON lines (see `worker/__main__.py`).

The process has an interpreter of its own. It asks for vectors as often as it likes; a failure, an
answer that makes no sense or too long a silence is `PeerFailed` with its reason.
"""

import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.records import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Encode = Callable[[Sequence[str]], NDArray[np.float32]]

WORKER = Path(__file__).with_name("worker")
TIMEOUT = 1_800
"""Seconds for one set of requests."""


class PeerFailed(Exception):
    """A peer did not answer, and why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a peer returned.

    Attributes:
        rankings: ids for each query, best first.
        version: of the peer's distribution.
    """

    rankings: list[list[str]]
    version: str


def ask(
    command: Sequence[str],
    tools: Sequence[dict[str, Any]],
    queries: Sequence[str],
    k: int,
    encode: "Encode",
    timeout: float = TIMEOUT,
) -> Answer:
    """Start the process, let it rank, and answer its requests for vectors.

    Args:
        command: the interpreter, the worker and the adapter.
        tools: see `tool_values`.
        k: the most ids for a query.

    Raises PeerFailed.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            process = subprocess.Popen(  # noqa: S603  the interpreter of --python
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            )
        except OSError as error:
            raise PeerFailed(f"{command[0]} cannot be started: {error.strerror}") from error
        watch = threading.Timer(timeout, process.kill)
        watch.start()
        try:
            request = {"tools": list(tools), "queries": list(queries), "k": k}
            answer = _exchange(process, request, encode)
        except (OSError, ValueError, KeyError) as error:
            reason = "it took too long" if watch.finished.is_set() else _last_line(errors)
            raise PeerFailed(reason or f"{type(error).__name__}: {error}") from error
        finally:
            watch.cancel()
            process.kill()
            process.communicate()
    return _checked(answer, tools, queries, k)


@dataclass(frozen=True, slots=True)
class Peers:
    """The peers of one environment. An answer to the same tools and queries is kept.

    Attributes:
        python: the interpreter.
        answers: the folder of answers.
        encode: returns a vector for each text.
    """

    python: Path
    answers: Path
    encode: "Encode"

    def ask(
        self, adapter: str, tools: Sequence[dict[str, Any]], queries: Sequence[str], k: int
    ) -> Answer:
        """The answer of an earlier run, or a new one; see `ask`. Raises PeerFailed."""
        source = (WORKER / f"{adapter}.py").read_text("utf-8")
        file = self.answers / f"{digest(source, self._installed(), tools, list(queries), k)}.json"
        if file.is_file():
            return Answer(**json.loads(file.read_text("utf-8")))
        command = [str(self.python), str(WORKER), adapter]
        answer = ask(command, tools, queries, k, self.encode)
        self.answers.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(answer)), "utf-8")
        return answer

    def _installed(self) -> list[str]:
        """The distributions of the environment, with their versions."""
        folders = self.python.parent.parent.glob("lib/python*/site-packages/*.dist-info")
        return sorted(folder.name for folder in folders)


def tool_values(tool: Tool, agent: str) -> dict[str, Any]:
    """A tool as the worker gets it.

    Args:
        agent: the agent's name.
    """
    schema = dict(tool.input_schema) or {"type": "object"}
    properties = schema.get("properties")
    if isinstance(properties, dict):  # peers expect objects; `true` is a schema, too
        schema["properties"] = {
            name: value if isinstance(value, dict) else {} for name, value in properties.items()
        }
    return {
        "id": tool.id,
        "name": tool.name,
        "description": tool.description,
        "agent": agent,
        "parameters": schema,
    }


def _exchange(
    process: "subprocess.Popen[str]", request: dict[str, Any], encode: "Encode"
) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    _write(process.stdin, request)
    for line in process.stdout:
        value: dict[str, Any] = json.loads(line)
        if "error" in value:
            raise PeerFailed(value["error"])
        if "encode" not in value:
            return value
        _write(process.stdin, {"vectors": encode(value["encode"]).tolist()})
    raise ValueError("it ended without an answer")


def _write(stream: IO[str], value: dict[str, Any]) -> None:
    stream.write(json.dumps(value) + "\n")
    stream.flush()


def _checked(
    answer: dict[str, Any],
    tools: Sequence[dict[str, Any]],
    queries: Sequence[str],
    k: int,
) -> Answer:
    known = {tool["id"] for tool in tools}
    rankings: Any = answer.get("rankings")
    if not isinstance(rankings, list) or len(rankings) != len(queries):
        raise PeerFailed(f"it returned no ranking for each of {len(queries)} queries")
    for ranking in rankings:
        if not known.issuperset(ranking) or len(set(ranking)) < len(ranking) or len(ranking) > k:
            raise PeerFailed(f"a ranking is {ranking!r:.80}, expected at most {k} ids of tools")
    return Answer(rankings, str(answer.get("version", "")))


def _last_line(errors: IO[str]) -> str:
    errors.seek(0)
    lines = [line.strip() for line in errors if line.strip()]
    return lines[-1][:300] if lines else ""
