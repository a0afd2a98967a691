"""`[run]` of a pegboard.toml: where the heavy steps of a build run."""

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pegboard.toml_settings import Settings

EngineName = Literal["local", "processes", "dask"]
ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://[^\s/:]+:\d+")
"""The form of a Dask scheduler's address."""


class RunSettings(Settings):
    """`[run]`: which engine runs the heavy steps, and how many pieces of them at once. No release
    depends on it.

    Attributes:
        engine: `local` for threads of the build's process, `processes` for others on its machine,
            or a Dask cluster.
        address: of the Dask cluster's scheduler.
        workers: one for each core that the build may use, or each slot of the cluster, if None.
    """

    engine: EngineName = "local"
    address: str | None = None
    workers: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _fits_the_engine(self) -> "RunSettings":
        if self.engine == "local" and self.workers is not None:
            raise ValueError(
                'workers: engine = "local" has none; set engine to "processes" or "dask"'
            )
        if self.address is not None and self.engine != "dask":
            raise ValueError(
                f'address: engine = "{self.engine}" runs on this machine; set engine to "dask", or '
                f"remove the address"
            )
        if self.engine == "dask" and not ADDRESS.fullmatch(self.address or ""):
            raise ValueError(
                f"address: expected the form tcp://scheduler:8786, got {self.address or 'none':.80}"
            )
        return self
