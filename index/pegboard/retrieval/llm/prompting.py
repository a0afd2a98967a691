"""The prompt files of the parts that ask an LLM."""

from functools import lru_cache
from pathlib import Path

from pegboard.errors import ConfigurationError
from pegboard.llm.prompts import Prompt, PromptFormat, load_prompts

OWN_PROMPTS = Path(__file__).parent / "prompts"
"""The library's own prompt files."""
FORMAT = PromptFormat(
    values=("request", "history", "steps", "tools", "count"), required=("request", "steps")
)
"""The values of every prompt; a part leaves those empty that it does not have."""
FORMATS = {path.stem: FORMAT for path in sorted(OWN_PROMPTS.glob("*.md"))}


@lru_cache(maxsize=64)
def prompt(name: str, folder: str | None = None) -> Prompt:
    """Return the prompt of that name: the file `NAME.md` of the folder, else the library's own.

    Raises:
        ConfigurationError: the folder does not exist, or a file has problems; lists all of them.
    """
    own = Path(folder).expanduser() if folder is not None else None
    if own is not None and not own.is_dir():
        raise ConfigurationError(
            f"The folder of prompts {own} does not exist. Expected a folder with {name}.md in it."
        )
    return load_prompts(OWN_PROMPTS, FORMATS, own, [name])[name]
