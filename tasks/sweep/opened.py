"""What the cells of a sweep share in a process: the release, its samples, encoders, and the vectors
of queries.
"""

import json
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.encoders import Encoder
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, read_queries
from pegboard.evaluation.searcher import Searcher
from pegboard.retrieval.llm.caller import open_caller
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.store.contract import VECTOR_OPTIONS
from pegboard.store.releases import ReleaseStore
from pegboard.tokens import prompt_tokens
from tasks.embed import encoder_for
from tasks.settings.configuration import IndexSettings
from tasks.sweep.files import read_json
from tasks.sweep.query_store import StoredQueries

if TYPE_CHECKING:
    from pegboard.retrieval.llm.caller import LlmCaller

_stored: dict[tuple[str, str, str], StoredQueries] = {}


def release_named(uri: str, name: str) -> str:
    """The id of the release that a channel has, or whose id begins so. Raises BoardNotFound."""
    return ReleaseStore(uri).named(name).id


@lru_cache(maxsize=2)
def release_of(uri: str, release: str) -> Searcher:
    """A release by its id. Raises BoardNotFound."""
    return Searcher.open(uri, release=release)


@lru_cache(maxsize=1)
def sample_of(uri: str, release: str, file: Path) -> LoadedRelease:
    """The release as if it had only the tools whose ids the file has; itself if that is all of
    them.
    """
    whole = release_of(uri, release)
    ids: list[str] = read_json(file)
    return whole.loaded if len(ids) == len(whole.names.catalogs) else whole.restricted(ids).loaded


def vectors_of(
    folder: Path, manifest: Mapping[str, Any], options: Mapping[str, Any]
) -> QueryVectors:
    """The vectors of queries for an index, kept in a folder.

    Args:
        manifest: what the release says of the index.
        options: of its encoder, where the configuration says more than the release: addresses,
            limits.
    """
    key = (str(folder), manifest["fingerprint"], json.dumps(dict(options), sort_keys=True))
    if key not in _stored:
        _stored[key] = StoredQueries(
            folder,
            manifest["encoder"],
            manifest["fingerprint"],
            manifest["dimensions"],
            lambda: encoder_of(manifest, options),
        )
    return QueryVectors(_stored[key], None, 0)  # which remembers by itself


def encoder_of(manifest: Mapping[str, Any], options: Mapping[str, Any]) -> Encoder:
    """The encoder of an index, loaded once in a process; the same that builds in this process have
    loaded.
    """
    published = {
        name: value for name, value in manifest["options"].items() if name in VECTOR_OPTIONS
    }
    return encoder_for(IndexSettings(encoder=manifest["encoder"], options={**published, **options}))


@cache
def caller_of(llm: str | None, api_base: str | None) -> "LlmCaller | None":
    """What asks the LLM; None without one."""
    return open_caller(llm, {"api_base": api_base} if api_base else None)


@lru_cache(maxsize=2)
def golden_queries(file: Path, expected: str) -> list[GoldenQuery]:
    """The golden queries of a file that has that digest. Raises ConfigurationError if it was
    changed meanwhile.
    """
    queries = read_queries(file)
    if digest([one.to_dict() for one in queries]) != expected:
        raise ConfigurationError(
            f"{file} was changed while the sweep ran. Start it again; what is still valid is kept."
        )
    return queries


def tokens_of(uri: str, release: str, tools: Collection[str]) -> Mapping[str, float]:
    """About how many tokens each of the tools takes in a prompt; see `pegboard.tokens`."""
    known = _tokens(uri, release)
    missing = [tool for tool in tools if tool not in known]
    known.update(prompt_tokens(release_of(uri, release).loaded, missing))
    return known


@lru_cache(maxsize=2)
def _tokens(_uri: str, _release: str) -> dict[str, float]:
    return {}
