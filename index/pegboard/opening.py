"""Opens a published board: `pegboard.open` and `pegboard.open_async`."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from pegboard.async_board import AsyncBoard
from pegboard.board import Board
from pegboard.encoders import Encoder
from pegboard.search.follower import ChannelFollower
from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.store.database import public_uri
from pegboard.store.releases import ReleaseStore

if TYPE_CHECKING:
    from pegboard.llm import Completer

P = ParamSpec("P")
PROOF = "what can these tools do?"
"""Query that a running reader asks of a new release before it moves there."""


def open_board(
    uri: str,
    channel: str = "live",
    release: str | None = None,
    *,
    encoder: Encoder | None = None,
    encoder_options: Mapping[str, Any] | None = None,
    hosted_encoders: Collection[str] = (),
    storage_options: Mapping[str, str] | None = None,
    llm: "str | Completer | None" = None,
    llm_options: Mapping[str, Any] | None = None,
    refresh: float = 5.0,
    in_memory_rows: int = IN_MEMORY_ROWS,
) -> Board:
    """Open a published board for searching; exported as `pegboard.open`.

    Args:
        uri: the board's root: a folder, or an address that LanceDB takes (s3://, az://, gs://).
        channel: the channel to follow.
        release: a release to stay on, instead of following a channel.
        encoder: encodes the queries, instead of the encoder that the release names; its fingerprint
            must be the same.
        encoder_options: how this reader reaches the encoder, such as `api_base`; what decides a
            vector is in the release.
        hosted_encoders: names of hosted encoders, such as `openai/text-embedding-3-small`, that a
            release may have its requests sent to. Encoders that run here and plug-ins need none.
        storage_options: credentials and endpoints for the store, as LanceDB takes them.
        llm: what strategies may ask that can use an LLM: a LiteLLM model's name such as
            `openai/gpt-4o-mini`, or a completer. Without one their rules do the work.
        llm_options: `api_base`, `api_key_env`, `price`, `timeout` (seconds for each question in
            all), `concurrency` (concurrent questions) and `options` (further arguments of LiteLLM);
            see `HostedCompleter` and `LlmCaller`.
        refresh: seconds by which an answer may be behind the channel, at most; a call checks the
            channel after half of that.
        in_memory_rows: indexes with more rows are searched through Lance.

    Raises:
        BoardNotFound: there is no board, channel or release of that name.
        StoreError: the store does not answer.

    Example:
        >>> board = pegboard.open("./board")
        >>> [hit.tool.name for hit in board.find("what time is it in Oslo?")]
    """
    store = ReleaseStore(uri, storage_options)
    vectors = QueryVectors(encoder, encoder_options, hosted=hosted_encoders)
    caller = None
    if llm is not None:  # a board without an LLM does not pay for the import
        from pegboard.retrieval.llm.caller import open_caller

        caller = open_caller(llm, llm_options)

    def load(identity: str) -> LoadedRelease:
        return LoadedRelease(store, store.get(identity), in_memory_rows)

    def prove(loaded: LoadedRelease) -> None:
        from pegboard.retrieval.find import FindArguments, find

        find(loaded, FindArguments([PROOF], 1), vectors, None)
        loaded.check_tools()
        if caller is not None:
            from pegboard.retrieval.llm.questions import check_prompts

            check_prompts(loaded.release.manifest.get("prompts", {}))

    if release:
        releases: LoadedRelease | ChannelFollower = load(release)
    else:
        read = partial(store.existing_channel, channel)
        releases = ChannelFollower(read, load, prove, refresh=refresh)
    return Board(releases, vectors, caller=caller, address=public_uri(uri))


def _async(function: Callable[P, Board]) -> Callable[P, Coroutine[Any, Any, AsyncBoard]]:
    @wraps(function)
    async def open_async(*args: P.args, **kwargs: P.kwargs) -> AsyncBoard:
        return AsyncBoard(await asyncio.to_thread(function, *args, **kwargs))

    return open_async


open_board_async = _async(open_board)
"""`open_board` for callers with an event loop; exported as `pegboard.open_async`."""
