"""An OpenAI-compatible server on loopback that writes about tools, and fails, as a script says.

With `trouble`, requests for a tool meet failures first, chosen by a hash of its name: HTTP errors,
hangs, broken bodies, then replies that do not validate."""

import contextlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from tests.openai_server import OpenAIServer, completion, serve_openai

HTTP = ["429", "500", "503", "529", "hang", "cut"]
CONTENT = ["not-json", "refusal", "wrong-tool", "unfinished"]
QUESTIONS = [
    "Could you {what} before the meeting at 9:30?",
    "I need someone to {what} for the Lisbon office.",
    "{what} with reference 4471, please.",
    "what is the quickest way to {what} this week?",
    "My manager asked me to {what} by Friday. Help!",
    "How do I {what} when the system is slow?",
    "Please {what} for customer 20931 and tell me when it is done.",
    "we have to {what} again, same as last month.",
    "Is it possible to {what} without the old password?",
    "For the audit I have to {what} from 3 March to 9 April.",
]


@dataclass
class ScriptedLlm:
    """A running server.

    Attributes:
        delay: seconds that a reply takes.
        hang: seconds after which a request that hangs is refused.
        log: what became of each request, in the order of its end: product, subject, outcome, and
            whether a client has to pay, which it has when a whole reply was sent.
        began: the subject of each request, in the order in which they came.
    """

    server: OpenAIServer
    delay: float = 0.0
    trouble: bool = False
    hang: float = 10.0
    log: list[dict[str, Any]] = field(default_factory=list)
    began: list[str] = field(default_factory=list)
    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return self.server.url

    def paid(self) -> list[dict[str, Any]]:
        """The requests that a client has to pay."""
        return [entry for entry in list(self.log) if entry["paid"]]

    def respond(self, handler: Any) -> None:
        # A client that was killed does not read its reply.
        with contextlib.suppress(OSError):
            self._write(handler, handler.body)

    def _write(self, handler: Any, body: dict[str, Any]) -> None:
        product, subject, outcome = self._decide(body)

        def end(*, paid: bool = False) -> None:
            self.log.append(
                {"product": product, "subject": subject, "outcome": outcome, "paid": paid}
            )

        if outcome.isdigit():
            end()
            wait = {"Retry-After": "0.2"} if outcome == "429" else {}
            handler.answer(int(outcome), wait, refusal(outcome))
        elif outcome == "hang":
            end()
            self.server.released.wait(self.hang)
            handler.answer(500, {}, refusal("too late"))
        else:
            time.sleep(self.delay)
            finish = "length" if outcome == "unfinished" else "stop"
            text = json.dumps(reply_to(body, content(subject, outcome), finish))
            if outcome == "cut":
                text = text[: len(text) // 2]
            handler.answer(200, {}, text.encode())
            end(paid=outcome != "cut")

    def _decide(self, body: dict[str, Any]) -> tuple[str, str, str]:
        product = (body.get("response_format") or {}).get("json_schema", {}).get("name", "text")
        users = [message["content"] for message in body["messages"] if message["role"] == "user"]
        named = re.search(r'"name":\s*"([^"]+)"', users[0])
        subject = named[1] if named else "?"
        with self.lock:
            attempt = self.attempts[product, subject]
            self.attempts[product, subject] += 1
            self.began.append(subject)
        plan = troubles(f"{product}:{subject}") if self.trouble else []
        return product, subject, plan[attempt] if attempt < len(plan) else "good"


@contextlib.contextmanager
def scripted_llm(**options: Any) -> Iterator[ScriptedLlm]:
    """Start a server with these attributes of `ScriptedLlm`."""
    with serve_openai() as server:
        llm = ScriptedLlm(server, **options)
        server.default = lambda _: llm.respond
        yield llm


def troubles(subject: str) -> list[str]:
    """The failures that a subject's requests meet, in their order; a third of the subjects meets
    none.
    """
    dice = crc32(subject.encode())
    if dice % 3 == 0:
        return []
    first = [HTTP[(dice >> 4) % len(HTTP)]] if dice % 3 == 1 else []
    second = [CONTENT[(dice >> 8) % len(CONTENT)]] if dice % 2 == 0 else []
    third = [CONTENT[(dice >> 12) % len(CONTENT)]] if second and dice % 7 == 0 else []
    return first + second + third


def good(subject: str) -> Any:
    """Questions that pass every check."""
    what = re.sub(r"[_\W]+", " ", subject).lower()
    what = re.sub(r"\b\d+\b", "", what).strip()
    mark = crc32(subject.encode()) % 9973
    return {"questions": [question.format(what=f"{what} {mark}") for question in QUESTIONS]}


def content(subject: str, outcome: str) -> str:
    questions = json.dumps(good(subject))
    if outcome in ("good", "cut"):
        return questions
    if outcome == "refusal":
        return "I'm sorry, but I can't help with that request."
    if outcome == "wrong-tool":
        names = ("send_harbour_letter", "open_school_order")
        other = names[subject == names[0]]
        return questions.replace("?", f" with {other}?").replace(".", f" with {other}.")
    if outcome == "unfinished":
        return questions[:25]
    return "Sure! Here is what you asked for: it is a fine tool."


def reply_to(body: dict[str, Any], text: str, finish: str = "stop") -> dict[str, Any]:
    """A reply whose tokens are counted by the length of what was sent and of what comes back."""
    prompt = sum(len(message["content"]) for message in body["messages"]) // 4
    return completion(text, finish, (prompt, len(text) // 4)) | {"model": body["model"]}


def refusal(what: str) -> dict[str, Any]:
    return {"error": {"message": f"scripted {what}"}}
