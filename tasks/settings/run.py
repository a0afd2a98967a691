"""`[run]` of a pegboard.toml: where the heavy steps of a build run."""

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pegboard.toml_settings import Settings

EngineName = Literal["local", "processes", "dask", "ray"]
ADDRESSES = {
    "dask": (re.compile(r"(tcp|tls|ucx|ws|wss)://[^\s/:]+:\d+"), "tcp://scheduler:8786"),
    "ray": (re.compile(r"ray://[^\s/:]+:\d+|[^\s/:]+:\d+|auto"), "ray://head:10001"),
}
"""The form of a cluster's address, and an example."""


class RunSettings(Settings):
    """`[run]`: which engine runs the heavy steps, and how many pieces of them at once. No release
    depends on it.

    Attributes:
        engine: `local` for threads of the build's process, `processes` for others on its machine,
            or a Dask or Ray cluster.
        address: the cluster's; without one, Dask or Ray start workers on this machine.
        workers: one for each core that the build may use, or each slot of the cluster, if None.
    """

    engine: EngineName = "local"
    address: str | None = None
    workers: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _fits_the_engine(self) -> "RunSettings":
        if self.engine == "local" and self.workers is not None:
            raise ValueError(
                'workers: engine = "local" has none; set engine to "processes", "dask" or "ray"'
            )
        if self.address is None:
            return self
        if self.engine not in ADDRESSES:
            raise ValueError(
                f'address: engine = "{self.engine}" runs on this machine; set engine to "dask" or '
                f'"ray", or remove the address'
            )
        form, example = ADDRESSES[self.engine]
        if not form.fullmatch(self.address):
            raise ValueError(f"address: expected the form {example}, got {self.address:.80}")
        return self
