"""An OpenAI-compatible server that does what a script says, for the tests: started as a process of
its own, on loopback.

    python tests/scripted_llm.py LOG [--delay S] [--hold FILE [--hold-after N]] [--trouble]
    [--hang S] [--golden FILE]

It prints its port. LOG gets one line of JSON for each request when it is decided, flushed: product,
subject, attempt, outcome. With
--trouble, requests for a tool meet failures first, chosen by a hash of its name: HTTP errors,
hangs, broken bodies, then replies that do
not validate. `paid` in the log says that a client would have to pay: a whole reply was sent. With
--hold, replies after the first N wait as long as FILE exists.

A model named `agent-HABIT` makes the tool calls that the golden queries of --golden say, as far as
it is given their tools. Habits: `right`; `drops` the last argument of each call; `unknown`: calls a
tool that nobody offered; `malformed`: arguments that are no JSON; `wordy`: adds a call of the first
tool that it is given; `fails`: status 500; `small`: status 400 for more than five tools; `crowded`:
with more than five tools it calls a wrong one in the place of the first; `plain` passes over tools,
as servers do that know none."""

import argparse
import asyncio
import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

from aiohttp import web

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


def called(habit: str, body: dict[str, Any], golden: dict[str, list[Any]]) -> list[tuple[str, str]]:
    """The calls of an agent with that habit: names of tools, and arguments as text."""
    calls = golden.get(body["messages"][-1]["content"], [])
    names = offered(body)
    made = [(one["tool"], dict(one.get("arguments", {}))) for one in calls if one["tool"] in names]
    if habit == "drops":
        made = [(tool, dict(list(arguments.items())[:-1])) for tool, arguments in made]
    if habit == "unknown":
        made = [("summon_dragon", {}) for _ in made]
    if habit == "crowded" and len(names) > 5 and made:
        wrong = [name for name in names if name not in {tool for tool, _ in made}]
        made[0] = (wrong[0], made[0][1])
    if habit == "wordy":
        made.append((names[0], {"please": True}))
    end = "," if habit == "malformed" else ""
    return [(tool, json.dumps(arguments)[: -1 if end else None] + end) for tool, arguments in made]


def offered(body: dict[str, Any]) -> list[str]:
    """The names of the tools that a request offers."""
    return [tool["function"]["name"] for tool in body.get("tools", [])]


def acted(habit: str, body: dict[str, Any], golden: dict[str, list[Any]]) -> dict[str, Any]:
    """The message of an agent."""
    if habit == "plain":
        return {"role": "assistant", "content": "I would look that up for you, if only I could."}
    made = [
        {"id": f"call-{at}", "type": "function", "function": {"name": tool, "arguments": text}}
        for at, (tool, text) in enumerate(called(habit, body, golden))
    ]
    return {
        "role": "assistant",
        "content": None if made else "No tool fits.",
        **({"tool_calls": made} if made else {}),
    }


class Script:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.log = Path(options.log).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115  open as long as the process
        self.attempts: Counter[tuple[str, str]] = Counter()
        lines = Path(options.golden).read_text("utf-8").splitlines() if options.golden else []
        self.golden = {one["query"]: one.get("calls", []) for one in map(json.loads, lines)}
        self.begun = 0

    def note(self, **what: Any) -> None:
        self.log.write(json.dumps({"at": round(time.time(), 4), **what}) + "\n")

    def ended(
        self, product: str, subject: str, outcome: Any, *, paid: bool = False, **more: Any
    ) -> None:
        self.note(
            event="ended", product=product, subject=subject, outcome=outcome, paid=paid, **more
        )

    def decide(self, body: dict[str, Any]) -> tuple[str, str, str]:
        product = (body.get("response_format") or {}).get("json_schema", {}).get("name", "text")
        users = [message["content"] for message in body["messages"] if message["role"] == "user"]
        named = re.search(r'"name":\s*"([^"]+)"', users[0])
        subject = named[1] if named else "?"
        attempt = self.attempts[product, subject]
        self.attempts[product, subject] += 1
        plan = troubles(f"{product}:{subject}") if self.options.trouble else []
        return product, subject, plan[attempt] if attempt < len(plan) else "good"

    async def wait(self) -> None:
        """Wait as long as a reply takes."""
        self.begun += 1
        held = self.options.hold is not None and self.begun > self.options.hold_after
        await asyncio.sleep(self.options.delay)
        while held and self.options.hold.exists():
            await asyncio.sleep(0.01)

    def content(self, subject: str, outcome: str) -> str:
        questions = json.dumps(good(subject))
        if outcome == "good":
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

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body.get("model", "").startswith("agent-") or body.get("tools"):
            return await self.act(body)
        product, subject, outcome = self.decide(body)
        self.note(event="began", product=product, subject=subject)
        if outcome in ("429", "500", "503", "529"):
            self.ended(product, subject, outcome)
            headers = {"Retry-After": "0.2"} if outcome == "429" else {}
            return web.json_response(
                {"error": {"message": f"scripted {outcome}"}},
                status=int(outcome),
                headers=headers,
            )
        if outcome == "hang":
            self.ended(product, subject, outcome)
            await asyncio.sleep(self.options.hang)
            return web.json_response({"error": {"message": "too late"}}, status=500)
        await self.wait()
        text = json.dumps(self.completion(body, self.content(subject, outcome), outcome))
        if outcome == "cut":
            self.ended(product, subject, outcome)
            return web.Response(text=text[: len(text) // 2], content_type="application/json")
        response = web.Response(text=text, content_type="application/json")
        await response.prepare(request)
        await response.write_eof()
        self.ended(product, subject, outcome, paid=True)
        return response

    async def act(self, body: dict[str, Any]) -> web.Response:
        habit = body["model"].removeprefix("agent-")
        tools = offered(body)
        refused = {"fails": 500}.get(habit) or (
            400 if habit == "small" and len(tools) > 5 else None
        )
        self.ended(
            "agent",
            body["messages"][-1]["content"],
            refused or "good",
            paid=not refused,
            tools=len(tools),
        )
        if refused:
            return web.json_response({"error": {"message": f"scripted {refused}"}}, status=refused)
        await self.wait()
        message = acted(habit, body, self.golden)
        reply = self.completion(body, str(message["content"] or message.get("tool_calls")))
        reply["choices"][0] |= {
            "message": message,
            "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
        }
        return web.json_response(reply)

    def completion(
        self, body: dict[str, Any], content: str, outcome: str = "good"
    ) -> dict[str, Any]:
        prompt = sum(len(message["content"]) for message in body["messages"]) // 4
        prompt += sum(len(json.dumps(tool)) for tool in body.get("tools", [])) // 4
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": len(content) // 4,
            "total_tokens": prompt + len(content) // 4,
        }
        choice = {
            "index": 0,
            "finish_reason": "length" if outcome == "unfinished" else "stop",
            "message": {"role": "assistant", "content": content},
        }
        return {
            "id": "chat",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [choice],
            "usage": usage,
        }


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("log")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--hang", type=float, default=10.0)
    parser.add_argument("--hold", type=Path)
    parser.add_argument("--hold-after", type=int, default=0)
    parser.add_argument("--trouble", action="store_true")
    parser.add_argument("--golden")
    script = Script(parser.parse_args())
    app = web.Application(client_max_size=1 << 28)
    app.router.add_post("/v1/chat/completions", script.chat)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)  # type: ignore[union-attr]
    await asyncio.to_thread(sys.stdin.read)  # until the test that started it lets go
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
