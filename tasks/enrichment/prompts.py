"""The prompt files of the enrichment; `pegboard.llm.prompts` describes their format.

`description`, `arguments`, `questions`, `topics` and `agents` have the sections `# system` and
`# user`, `repair` has `# user`. A file of that name in the folder `prompts/` beside
the configuration replaces the built-in one. Another version asks for its replies anew.

Values, the same in every file; what a request has nothing of is empty, so `{% if neighbours %}`
works:

    tool         the tool: name, description, arguments, examples      as JSON inside <data>
    neighbours   its nearest siblings: name, agent, description        as JSON inside <data>
    questions    requests that it answers                              as JSON inside <data>
    agent        the agent: name, description                          as JSON inside <data>
    tools        the agent's tools: name, description                  as JSON inside <data>
    examples     the few-shot examples of this file, each with input and output
    context      what the configuration and this file say about the domain
    language     the language to write in, as words
    count        how many questions or topics
    schema       the JSON Schema of the reply as text
    problem      (repair only) what was wrong with the reply
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pegboard.llm import prompts as prompt_files
from pegboard.llm.prompts import Prompt, PromptFormat
from pegboard.retrieval.llm.questions import FORMATS as REQUEST_FORMATS
from tasks.settings.enrichment import PRODUCTS, Product

BUILTIN_PROMPTS = Path(__file__).parent / "prompts"
"""The package's own prompt files, which a folder of the user's may replace one by one."""

LANGUAGES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "en": "English", "es": "Spanish",
    "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish",
    "pt": "Portuguese", "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip

_VALUES = (
    *("tool", "neighbours", "questions", "agent", "tools"),
    *("language", "count", "schema"),
)
_REQUIRED: dict[Product, tuple[str, ...]] = {"agents": ("agent", "tools")}
FORMATS: dict[str, PromptFormat] = {
    **{name: PromptFormat(_VALUES, required=_REQUIRED.get(name, ("tool",))) for name in PRODUCTS},
    "repair": PromptFormat((*_VALUES, "problem"), ("user",), ("problem",)),
}


def load_enrichment_prompts(
    folder: Path | None, products: Iterable[Product]
) -> Mapping[str, Prompt]:
    """Read and check the prompts of these products and `repair`; returns them by name.

    Files in `folder` replace built-in ones.

    Raises:
        ConfigurationError: lists every problem with its file and, where known, its line.
    """
    formats = {**REQUEST_FORMATS, **FORMATS}  # the folder has prompts of strategies, too
    names = (*products, "repair")
    return prompt_files.load_prompts(BUILTIN_PROMPTS, formats, folder, names)


def language_words(code: str | None, default: str) -> str:
    """Return a language code as words; `default` if there is no code."""
    return LANGUAGES.get(code, code) if code else default
