"""What the filter did, as records and as sentences for a person."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tasks.enrichment.bought import Writings


@dataclass(frozen=True, slots=True)
class Unfound:
    """A tool most of whose generated questions find others before it.

    Attributes:
        dropped: how many of its `questions` were dropped.
        rival: the tool that most of those find first, `times` of them.
        alike: whether the descriptions of the two are so alike that they collide.
    """

    tool: str
    dropped: int
    questions: int
    rival: str
    times: int
    alike: bool

    def __str__(self) -> str:
        if self.alike:
            advice = (
                "Its description does not say what sets it apart from that one; say it at "
                "its source or in an override."
            )
        else:
            advice = (
                "They ask for what that one does; say at its source or in an override what "
                "this one is for."
            )
        found = f"{self.times} of those find {self.rival} first"
        return (
            f"{self.tool}: {self.dropped} of {self.questions} questions do not find it, and "
            f"{found}. {advice}"
        )


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A tool whose regenerated description was taken back, with the mean reciprocal rank of its
    requests by both descriptions.
    """

    tool: str
    requests: int
    original: float
    regenerated: float

    def __str__(self) -> str:
        figures = f"mean reciprocal rank {self.regenerated:.3f} instead of {self.original:.3f}"
        return (
            f"{self.tool}: the catalog's description stays, since the catalog's own requests "
            f"({self.requests}) "
            f"find the tool less well by the new one ({figures})."
        )


@dataclass(frozen=True, slots=True)
class Filtered:
    """What the filter left, and what it did.

    Attributes:
        writings: the folder of the lake with what is left.
        path: the file of the lake with every generated question, its rank, and why it was dropped.
        k: a question is kept if its tool is among the first k.
        questions: how many were judged, of which so many were `kept`.
        descriptions: how many were judged; those in `taken_back` are out.
    """

    writings: Writings
    path: str
    k: int
    questions: int
    kept: int
    descriptions: int
    unfound: tuple[Unfound, ...] = ()
    taken_back: tuple[TakenBack, ...] = ()

    @property
    def reports(self) -> tuple[str, ...]:
        """Sentences for a person; of the tools that are not found, the worst come first."""
        return tuple(str(one) for one in (*self.unfound, *self.taken_back))

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "writings": asdict(self.writings),
            "path": self.path,
            "questions": {
                "written": self.questions,
                "kept": self.kept,
                "dropped": self.questions - self.kept,
                "k": self.k,
            },
            "descriptions": {
                "written": self.descriptions,
                "kept": self.descriptions - len(self.taken_back),
                "taken_back": len(self.taken_back),
            },
            "unfound": [asdict(one) for one in self.unfound],
            "taken_back": [asdict(one) for one in self.taken_back],
            "reports": list(self.reports),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "Filtered":
        """The same from what `to_dict` returned."""
        return cls(
            writings=Writings(**value["writings"]),
            path=value["path"],
            k=value["questions"]["k"],
            questions=value["questions"]["written"],
            kept=value["questions"]["kept"],
            descriptions=value["descriptions"]["written"],
            unfound=tuple(Unfound(**one) for one in value["unfound"]),
            taken_back=tuple(TakenBack(**one) for one in value["taken_back"]),
        )
