"""Opening a board: `pegboard.open` and its twin for callers with an event loop."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pegboard.board import IN_MEMORY_ROWS, Board
from pegboard.encoders import Encoder
from pegboard.store.releases import ReleaseStore

if TYPE_CHECKING:
    from pegboard.llm import Completer


def open_board(
    uri: str,
    channel: str = "live",
    release: str | None = None,
    *,
    encoder: Encoder | None = None,
    encoder_options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    llm: "str | Completer | None" = None,
    llm_options: Mapping[str, Any] | None = None,
    refresh: float = 5.0,
    background: bool = False,
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
        storage_options: credentials and endpoints for the store, as LanceDB takes them.
        llm: what the parts of a strategy may ask that can use an LLM: a LiteLLM model's name such
            as `openai/gpt-4o-mini`, or a completer. Without one their embedded counterparts do the
            work.
        llm_options: `api_base`, `api_key_env`, `price`, `timeout` (seconds for each question in
            all) and `concurrency` (questions on their way at once); see `HostedCompleter` and
            `LlmCaller`.
        refresh: seconds by which an answer may be behind the channel, at most; a call looks after
            half of that.
        background: whether a thread looks instead, so that no call ever waits for the store.
        in_memory_rows: indexes with more rows are searched through Lance.

    Raises BoardNotFound if there is no board, channel or release of that name, StoreError if the
    store does not answer.

    Example:
        >>> board = pegboard.open("./board")
        >>> [hit.tool.name for hit in board.find("what time is it in Oslo?")]
    """
    return Board(
        ReleaseStore(uri, storage_options),
        channel=channel,
        release=release,
        encoder=encoder,
        encoder_options=encoder_options,
        llm=llm,
        llm_options=llm_options,
        refresh=refresh,
        background=background,
        in_memory_rows=in_memory_rows,
    )


async def open_board_async(
    uri: str, channel: str = "live", release: str | None = None, **options: Any
) -> Board:
    """`open_board` in a thread, for callers with an event loop; exported as `pegboard.open_async`.
    Takes the same options.

    Example:
        >>> board = await pegboard.open_async("./board")
        >>> hits = await board.find_async("what time is it in Oslo?")
    """
    import asyncio

    return await asyncio.to_thread(partial(open_board, uri, channel, release, **options))
