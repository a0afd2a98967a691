"""What came of a gate, as the steps after it need it: small, since it travels; the details lie in
the lake.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Gated:
    """Whether a staged release may go live, and what its manifest says of that.

    Attributes:
        gate: what stands in the manifest under `gate`: see `docs/reference/table-contract.md`.
        default: what of the manifest's defaults was chosen: `default_index` and `strategy`; nothing
            where they stay as configured.
    """

    passed: bool
    gate: Mapping[str, Any]
    default: Mapping[str, Any]

    @property
    def details(self) -> str:
        """The path in the lake of all that was measured."""
        return str(self.gate["details"])

    def manifest(self) -> dict[str, Any]:
        """What it changes of a release's manifest."""
        return {**self.default, "gate": dict(self.gate)}
