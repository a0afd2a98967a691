"""The machine that figures were measured on."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any


def machine(*packages: str) -> dict[str, Any]:
    """Its processor, memory and versions; no host name and no path.

    Args:
        packages: distributions whose versions matter.
    """
    try:
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        memory = None
    return {
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "memory_gib": memory,
        **{name: version(name) for name in packages},
    }


def machine_line(*packages: str) -> str:
    """The same in one line."""
    return ", ".join(f"{name} {value}" for name, value in machine(*packages).items())


def _cpu() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
