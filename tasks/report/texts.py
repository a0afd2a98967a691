"""Texts of catalogs as a report carries them, cut to size; and tools by the parts of their ids."""

SHORT = 300
LONG = 600


def cut(text: str, length: int = SHORT) -> str:
    """The beginning of a text, with an ellipsis where something follows; line breaks inside
    stay.
    """
    text = text.strip()
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def agent_of(tool: str) -> str:
    """The id of the agent of a tool with that id."""
    return tool.rpartition("/")[0]
