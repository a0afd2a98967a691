"""Every error that Pegboard raises on purpose.

PegboardError
├── ConfigurationError      pegboard.toml or an option is wrong             exit 2
├── SourceError             a source of tools could not be read             exit 3
├── BoardError              the published board cannot be used              exit 4
│   ├── BoardNotFound       no board, release, channel or index of that name
│   ├── ContractMismatch    the tables follow a contract this version cannot read
│   └── StoreError          the store did not answer or refused
├── EncoderError            an encoder cannot load or answer                exit 5
│   └── FingerprintMismatch the query encoder is not the one of the release
├── PublishError            a release could not be published                exit 6
│   ├── PromotionConflict   someone else moved the channel meanwhile
│   └── GateFailed          a release did not pass its gate and is held     exit 8
├── CompletionError         an LLM did not answer, or refused               exit 7
│   └── BudgetExhausted     a run reached the budget that it was given
└── QueryError              a search has invalid arguments                  exit 2

A message says what, where, what was expected, and the next step. `exit_code` is what the command
line ends with."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

MAX_PROBLEMS = 30
"""Maximum number of problems listed in a message, which states the total."""


class PegboardError(Exception):
    """The root: catch this to catch everything that Pegboard raises on purpose."""

    exit_code = 1


class ConfigurationError(PegboardError):
    """pegboard.toml or an option is wrong; the message lists every problem found."""

    exit_code = 2

    @classmethod
    def from_problems(cls, subject: str, problems: Sequence[str], next_step: str = "") -> Self:
        """Return one error for several problems.

        Args:
            subject: what has the problems, such as the file.
            problems: each as `place: what is wrong, and what is expected`.
            next_step: what to do about them, as a sentence.
        """
        count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
        lines = [f"{subject} has {count}:", *(f"  - {line}" for line in problems[:MAX_PROBLEMS])]
        if len(problems) > MAX_PROBLEMS:
            lines.append(f"  ... and {len(problems) - MAX_PROBLEMS} more")
        return cls("\n".join([*lines, next_step]).rstrip())


class SourceError(PegboardError):
    """A whole source of tools could not be read; its last good snapshot stays.

    Attributes:
        may_pass: whether the same call may succeed later. A build retries such a failure a few
            times; it does not retry any other.
        retry_after: the seconds that the server asks to wait, if it asks.
    """

    exit_code = 3

    def __init__(
        self, message: str, *, may_pass: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.may_pass = may_pass
        self.retry_after = retry_after


class BoardError(PegboardError):
    """The published board cannot be used."""

    exit_code = 4


class BoardNotFound(BoardError):
    """There is no board at that address, or no release, channel or index of that name on it."""


class ContractMismatch(BoardError):
    """The tables follow a version of the table contract that this library does not read."""


class StoreError(BoardError):
    """The store that holds the board did not answer or refused."""


class EncoderError(PegboardError):
    """An encoder cannot load, or did not answer. Nothing else is ever used in its place."""

    exit_code = 5


class FingerprintMismatch(EncoderError):
    """The query encoder is not the one that made the vectors of the release."""


class PublishError(PegboardError):
    """A release could not be published; what was live before still is."""

    exit_code = 6


class PromotionConflict(PublishError):
    """Another publisher moved the channel meanwhile; nothing was changed."""


class GateFailed(PublishError):
    """A release did not pass its gate: it is recorded, so that it can be looked at, and no channel
    moved.

    Attributes:
        outcome: what the run did, as JSON values.
    """

    exit_code = 8

    def __init__(self, message: str, outcome: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome or {}


class CompletionError(PegboardError):
    """An LLM did not answer, or refused the request. Nothing is ever made up in its place.

    Attributes:
        kind: what went wrong, a key of `llm.failures.NEXT_STEPS`: key, model, quota, rate, timeout,
            server, ...
        may_pass: whether the same request may succeed later.
        retry_after: the seconds that the server asks to wait, if it asks.
        status: the HTTP status, if there was one.
    """

    exit_code = 7

    def __init__(
        self,
        message: str,
        *,
        kind: str = "reply",
        may_pass: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.may_pass = may_pass
        self.retry_after = retry_after
        self.status = status


class BudgetExhausted(CompletionError):
    """A run reached the budget that it was given. What was bought is kept; the next run goes on
    from there.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="budget")


class QueryError(PegboardError):
    """A search has invalid arguments: an unknown mode, filter or dimension."""

    exit_code = 2


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'NAME'?` with the most similar name, nothing if none is similar."""
    from difflib import get_close_matches

    similar = get_close_matches(name.lower(), sorted(names), n=1)
    return f"; did you mean '{similar[0]}'?" if similar else ""
