"""Packages of npm that tests run, installed once beside the checkout."""

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[1] / ".cache" / "npm"


def node_modules(package: str, *options: str) -> Path:
    """The folder `node_modules` of a package, like `azurite@3`; skips the test where npm cannot
    install it. Workers take turns: npm links a program before its modules are whole."""
    npm = shutil.which("npm")
    folder = CACHE / package.replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            if npm is None:
                pytest.skip(f"there is no npm to install {package} with")
            command = [npm, "install", package, "--prefix", str(folder), "--no-audit", "--no-fund"]
            done = subprocess.run([*command, *options], capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"npm could not install {package}: {done.stderr.strip()[-300:]}")
            (folder / "installed").touch()
    return folder / "node_modules"
