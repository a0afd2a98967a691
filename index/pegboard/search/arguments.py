"""Validation of the arguments that all searches share."""

from collections.abc import Sequence
from typing import Any

from pegboard.errors import QueryError


def check_arguments(*, k: Any, index: Any, texts: Any, history: Any = ()) -> None:
    """Raise QueryError with every invalid argument and what is expected.

    Args:
        texts: the requests.
    """
    problems: list[str] = []
    if not _are_texts(texts):
        problems.append(f"the requests are {texts!r:.80}, expected a list of texts")
    if isinstance(k, bool) or not hasattr(k, "__index__") or k < 1:
        problems.append(f"k is {k!r:.80}, expected the number of results, 1 or more")
    if index is not None and not isinstance(index, str):
        problems.append(f"the index is {index!r:.80}, expected the name of one, or None")
    if not isinstance(history, list | tuple):
        problems.append(f"the history is {history!r:.80}, expected a list of messages")
    if problems:
        raise QueryError(f"Invalid arguments: {'; '.join(problems)}.")


def _are_texts(values: Any) -> bool:
    if isinstance(values, str) or not isinstance(values, Sequence):
        return False
    return all(isinstance(value, str) for value in values)
