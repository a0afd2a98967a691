"""Many requests at once, at a lower price and within a day: OpenAI's batch API.

A batch carries a token of the caller in its metadata. So a batch whose creator died before it
stored the batch's id is found again, and not paid for twice:

    batch = await batches.find(token) or await batches.submit(requests, token)
    while (await batches.status(batch)).state == "running": ...
    for custom_id, reply in await batches.results(batch): ...

Each call is one attempt, as with a completer; `llm.retry` fits them too. LiteLLM says what a
request looks like and what it costs. The calls go through the OpenAI client beneath it: LiteLLM's
own functions for files and batches open a client per call, with no way to close it.
"""

import asyncio
import importlib
import json
import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatReply, ChatRequest
from pegboard.llm.chat_format import chat_arguments, read_answer
from pegboard.llm.endpoint import Endpoint

logger = logging.getLogger(__name__)

_ENDPOINT = "/v1/chat/completions"
_STATES: dict[str, Literal["running", "ended", "failed"]] = {
    "completed": "ended",
    "expired": "ended",  # past its 24 hours; what was done by then is there
    "cancelled": "ended",
    "failed": "failed",  # refused as a whole, before any request was looked at
}


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """The progress of a batch.

    Attributes:
        state: `ended` has results, of all requests or some; `failed` was refused as a whole.
        completed: requests that were answered.
        failed: requests that were refused.
        total: requests in the batch; 0 while the provider still reads them.
        detail: the provider's word for the state, and its problems.
    """

    state: Literal["running", "ended", "failed"]
    completed: int
    failed: int
    total: int
    detail: str


class HostedBatches:
    """The batches of a model at OpenAI, or at a server with the same API.

    Args:
        name: the model as LiteLLM names it, such as `openai/gpt-4o-mini`.
        api_base: the address of the server, where it is not OpenAI's own. No key is sent there but
            that of `api_key_env`.
        api_key_env: the environment variable that holds the key, where it is not OPENAI_API_KEY.
        timeout: seconds to wait for an answer; files of requests and replies are large.
        price: USD for a million tokens outside of batches; half of it is reckoned.

    Raises:
        ConfigurationError: the model's provider is another, or an option has no such value.
        CompletionError: LiteLLM is not installed.
    """

    def __init__(
        self,
        name: str,
        *,
        api_base: str | None = None,
        api_key_env: str | None = None,
        timeout: float = 600.0,
        price: tuple[float, float] | None = None,
    ) -> None:
        self._endpoint = Endpoint(
            name, api_base=api_base, api_key_env=api_key_env, timeout=timeout, price=price
        )
        if self._endpoint.provider != "openai":
            raise ConfigurationError(
                f"Model {name!r}: batches are known for OpenAI's API only, and this is "
                f"{self._endpoint.provider}. "
                "Set mode = 'live', or name a server with that API openai/NAME with its api_base."
            )
        self._openai: Any = importlib.import_module("openai")  # LiteLLM is there, and needs it
        self.name = name

    async def submit(self, requests: Sequence[tuple[str, ChatRequest]], token: str) -> str:
        """Upload the requests, start a batch and return its id.

        After an error, call `find` before submitting again.

        Args:
            requests: each with an id of its own, by which its reply is known.
            token: what `find` looks for, at most 64 characters; also the name of the uploaded file.

        Raises:
            CompletionError: the provider did not answer, or refused.
        """
        if len({custom_id for custom_id, _ in requests}) != len(requests) or not requests:
            raise self._endpoint.error(
                "was not asked: a batch needs requests, each with an id of its own", "request"
            )
        content = b"".join(await asyncio.to_thread(lambda: list(self._lines(requests))))
        file = (f"{token}.jsonl", content, "application/jsonl")
        uploaded = await self._call(lambda client: client.files.create(file=file, purpose="batch"))
        created = await self._call(
            lambda client: client.batches.create(
                completion_window="24h",
                endpoint=_ENDPOINT,
                input_file_id=uploaded.id,
                metadata={"pegboard": token},
            )
        )
        return str(created.id)

    async def find(self, token: str) -> str | None:
        """Return the id of the newest batch with that token, if any; raises as `submit`."""
        more: dict[str, str] = {}
        while True:
            page = await self._call(
                lambda client, more=more: client.batches.list(limit=100, **more)
            )
            for batch in page.data or []:
                if (batch.metadata or {}).get("pegboard") == token:
                    return str(batch.id)
            if not page.data or not page.has_more or page.data[-1].id == more.get("after"):
                return None
            more = {"after": page.data[-1].id}

    async def status(self, batch_id: str) -> BatchStatus:
        """Return the progress of the batch; raises as `submit`."""
        batch = await self._call(lambda client: client.batches.retrieve(batch_id))
        counts = batch.request_counts
        problems = [str(problem.message) for problem in getattr(batch.errors, "data", None) or []]
        return BatchStatus(
            _STATES.get(batch.status, "running"),
            getattr(counts, "completed", 0) or 0,
            getattr(counts, "failed", 0) or 0,
            getattr(counts, "total", 0) or 0,
            self._endpoint.scrubbed(
                ": ".join([str(batch.status), "; ".join(problems)]).removesuffix(": ")
            ),
        )

    async def results(self, batch_id: str) -> list[tuple[str, ChatReply | CompletionError]]:
        """Return (request id, reply or error) of a batch that has ended.

        Requests of which the provider says nothing are missing. Prompt tokens that the server did
        not count are 0: the requests are not known here.

        Raises:
            CompletionError: the batch still runs, or the provider did not answer, or refused.
        """
        batch = await self._call(lambda client: client.batches.retrieve(batch_id))
        if _STATES.get(batch.status, "running") == "running":
            raise self._endpoint.error(
                f"has no results of batch {batch_id} yet ({batch.status})", "batch", may_pass=True
            )
        seconds = float((batch.completed_at or batch.created_at) - batch.created_at)
        results: dict[str, ChatReply | CompletionError] = {}
        for file in filter(None, (batch.error_file_id, batch.output_file_id)):
            content = (
                await self._call(lambda client, file=file: client.files.content(file))
            ).content
            results |= await asyncio.to_thread(
                lambda content=content: dict(self._read(content, seconds))
            )
        return list(results.items())

    async def _call(self, act: Callable[[Any], Awaitable[Any]]) -> Any:
        endpoint = self._endpoint

        async def work() -> Any:
            client = self._openai.AsyncOpenAI(
                api_key=endpoint.key(),
                base_url=endpoint.api_base,
                timeout=endpoint.timeout,
                max_retries=0,
            )
            async with client:
                return await act(client)

        return await endpoint.guarded(work)

    def _lines(self, requests: Sequence[tuple[str, ChatRequest]]) -> Iterator[bytes]:
        bodies = _Bodies(self._endpoint)
        head = '{{"custom_id": {}, "method": "POST", "url": "{}", "body": {}}}\n'
        for custom_id, request in requests:
            try:
                yield head.format(json.dumps(custom_id), _ENDPOINT, bodies.body(request)).encode()
            except UnicodeEncodeError:
                problem = f"was not asked: the text of request {custom_id!r} is no valid Unicode"
                raise self._endpoint.error(problem, "request") from None

    def _read(
        self, content: bytes, seconds: float
    ) -> Iterator[tuple[str, ChatReply | CompletionError]]:
        for line in filter(None, content.split(b"\n")):
            try:
                row = json.loads(line, object_hook=lambda fields: SimpleNamespace(**fields))
                custom_id = str(row.custom_id)
            except (ValueError, AttributeError):
                logger.warning(
                    "%s: a line of a batch's results is not readable, and its request has no reply",
                    self.name,
                )
            else:
                yield custom_id, self._result(row, seconds)

    def _result(self, row: Any, seconds: float) -> ChatReply | CompletionError:
        response = getattr(row, "response", None)
        if response is None:
            reason = _message(getattr(row, "error", None)) or "no reason given"
            return self._endpoint.error(
                f"did not get to it: {self._endpoint.scrubbed(reason)}", "batch", may_pass=True
            )
        status, body = getattr(response, "status_code", None), getattr(response, "body", None)
        if status != 200:
            problem = getattr(body, "error", None)
            return self._endpoint.failure(
                _Refused(_message(problem) or f"status {status}", status, problem)
            )
        answer = read_answer(body)
        if answer is None:
            return self._endpoint.error(
                "answered, but its reply holds no message", "reply", may_pass=True
            )
        prompt = answer.prompt_tokens or 0
        completion = answer.completion_tokens or self._endpoint.count_tokens(answer.text)
        price = self._endpoint.batch_price_per_token()
        return ChatReply(
            text=answer.text,
            finish_reason=answer.finish_reason,
            model=self.name,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost_usd=prompt * price[0] + completion * price[1] if price and prompt else None,
            seconds=seconds,
        )


class _Refused(Exception):
    """One request of a batch that was refused, in the form in which failures are told apart."""

    def __init__(self, message: str, status_code: Any, body: Any) -> None:
        super().__init__(message)
        self.status_code, self.body = status_code, body


class _Bodies:
    """The bodies that LiteLLM would send, as JSON.

    LiteLLM takes about 20 ms for one; requests that differ only in their texts share it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._frames: dict[str, str] = {}
        self._mark = uuid.uuid4().hex  # stands where the texts go, and occurs in none of them
        self._marks = re.compile(rf"{self._mark}-(\d+)-")

    def body(self, request: ChatRequest) -> str:
        marked = tuple(
            replace(message, content=f"{self._mark}-{at}-")
            for at, message in enumerate(request.messages)
        )
        frame = replace(request, messages=marked)
        kind = json.dumps(chat_arguments(frame))
        if kind not in self._frames:
            self._frames[kind] = self._frame(frame)
        texts = [
            json.dumps(message.content, ensure_ascii=False)[1:-1] for message in request.messages
        ]
        return self._marks.sub(lambda match: texts[int(match[1])], self._frames[kind])

    def _frame(self, request: ChatRequest) -> str:
        litellm = self._endpoint.litellm
        arguments = chat_arguments(request) | {"model": self._endpoint.name}
        raw = litellm.utils.return_raw_request(litellm.types.utils.CallTypes.completion, arguments)
        if raw.get("error") or not raw.get("raw_request_body"):
            problem = self._endpoint.scrubbed(str(raw.get("error")))
            raise self._endpoint.error(
                f"was not asked: LiteLLM makes no request of it ({problem})", "request"
            )
        body = dict(raw["raw_request_body"])
        return json.dumps(body | (body.pop("extra_body", None) or {}), ensure_ascii=False)


def _message(error: Any) -> str:
    return str(getattr(error, "message", None) or "")
