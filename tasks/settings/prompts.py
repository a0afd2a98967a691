"""The prompts of strategies that a release publishes: files beside pegboard.toml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard.llm.prompts import load_prompts
from pegboard.retrieval.strategy import Strategy

FOLDER = "prompts"
"""The folder beside pegboard.toml; files of enrichment prompts stand there, too."""


def published_prompts(base: Path) -> dict[str, str]:
    """Return the texts of the request-time prompts in the folder `prompts/`, by name.

    Args:
        base: the folder of pegboard.toml.

    Raises:
        ConfigurationError: lists every problem of these files, and files of unknown names.
    """
    folder = base / FOLDER
    if not folder.is_dir():
        return {}
    # Loaded only here: few boards have prompts of their own.
    from pegboard.retrieval.llm.questions import FORMATS, PROMPTS
    from tasks.enrichment.prompts import FORMATS as ENRICHMENT_FORMATS

    names = [name for name in FORMATS if (folder / f"{name}.md").exists()]
    load_prompts(PROMPTS, {**ENRICHMENT_FORMATS, **FORMATS}, folder, names)
    return {name: (folder / f"{name}.md").read_text("utf-8-sig") for name in names}


def local_prompts(place: str, strategy: str | Mapping[str, Any] | None) -> list[str]:
    """Return a problem for each part of a strategy that names a folder of prompts.

    Readers of the release have no such folder.
    """
    parts = Strategy.from_dict(strategy).parts() if isinstance(strategy, Mapping) else []
    return [
        f"{place}: the part '{part.part}' takes prompts from a folder, which readers do not have; "
        f"put the files in {FOLDER}/ beside pegboard.toml, and the release publishes them"
        for part in parts
        if getattr(part, "prompts", None) is not None
    ]
