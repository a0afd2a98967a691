"""The prompts of strategies that a release publishes: files beside pegboard.toml."""

from pathlib import Path

from pegboard.llm.prompts import load_prompts

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
