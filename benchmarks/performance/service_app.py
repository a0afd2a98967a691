"""What `service` measures, in a module that imports nothing else: its memory is measured, too."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

K = 5
URI = "PEGBOARD_BENCHMARK_BOARD"
"""The environment variable that names the board to the service."""


def app() -> Any:
    """The service; uvicorn calls this in a process of its own."""
    import fastapi

    import pegboard

    uri, service = os.environ[URI], fastapi.FastAPI()
    opened: dict[str, Any] = {}

    @service.get("/empty")
    async def empty(q: str) -> list[str]:
        return [q]

    @service.get("/find")
    async def find(q: str) -> list[str]:
        if "board" not in opened:
            opened["board"] = await pegboard.open_async(uri, refresh=3600)
        return [hit.tool.id for hit in await opened["board"].find(q, K)]

    @service.get("/lancedb")
    async def plain(q: str) -> list[str]:
        if "plain" not in opened:
            from pegboard.encoders import DEFAULT_ENCODER, load_encoder

            opened["plain"] = plain_search(uri, load_encoder(DEFAULT_ENCODER))
        rows = await asyncio.to_thread(opened["plain"], q)
        return [row["tool"] for row in rows]

    return service


def plain_search(uri: str, encoder: Any) -> Callable[[Any], object]:
    """A search of the board's vectors by LanceDB alone, for a vector or a request in words."""
    import lancedb

    table = lancedb.connect(f"{uri}/tables").open_table("emb_full")

    def search(query: Any) -> object:
        vector = encoder.encode([query])[0] if isinstance(query, str) else query
        return (
            table.search(vector, vector_column_name="vector")
            .distance_type("cosine")
            .select(["tool", "_distance"])
            .limit(K)
            .to_list()
        )

    return search
