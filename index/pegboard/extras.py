"""Packages of optional extras: import them, or say how to install them."""

import importlib
import re
from typing import Any

from pegboard.errors import EncoderError


def import_extra(module: str) -> Any:
    """Import and return a module of an optional extra.

    Raises EncoderError with the install command if it is not installed or fails to import.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            raise missing_extra(module) from None
        raise EncoderError(
            f"{module} is installed but does not import: {error}. Reinstall it: "
            f"{install_command(module)}"
        ) from error


def missing_extra(module: str, requirement: str | None = None) -> EncoderError:
    """Return the error for a package that is not installed.

    Args:
        requirement: the package to install, if it is not the one that is imported.
    """
    command = install_command(requirement or module)
    return EncoderError(
        f"This needs the package {module}, which is not installed. Install it: {command}"
    )


def install_command(package: str) -> str:
    """Return the command that installs a package, by its extra if this distribution's metadata
    has one.
    """
    import importlib.metadata  # slow to import, and only an error needs it

    try:
        requirements = importlib.metadata.requires("pegboard") or []
    except (
        importlib.metadata.PackageNotFoundError
    ):  # run from a source tree that was never installed
        requirements = []
    for requirement in requirements:
        extra = re.search(r"extra == ['\"]([\w-]+)", requirement)
        if extra and re.match(rf"{re.escape(package)}(?![\w-])", requirement):
            return f"pip install './index[{extra[1]}]' in Pegboard's checkout"
    return f"pip install {package}"
