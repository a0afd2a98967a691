"""`pegboard serve`: a gateway through which agents find and call the tools of a board."""

import argparse
import sys
from pathlib import Path

from pegboard.cli.output import Subparsers, add_command, add_options, default_board
from pegboard.errors import ConfigurationError
from pegboard.extras import install_command

FILE = "pegboard.toml"
HOST = "127.0.0.1"
PORT = 8720
SERVE = """\
examples:
  pegboard serve                                   HTTP on 127.0.0.1:8720, of ./pegboard.toml
  pegboard serve --board ./board --port 9000
  pegboard serve -c pegboard.toml --stdio          for the configuration of an MCP client

`[serve]` of pegboard.toml says who may see and call what, and how calls are made; see
docs/how-to/serve-a-board.md, also for how Claude, Codex, Cursor and VS Code connect."""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "serve",
        _serve,
        SERVE,
        help="serve a board to agents over MCP and HTTP",
        description="Serve a board to agents: over MCP they search its tools and call them.",
    )
    parser.add_argument("-c", "--config", metavar="FILE", help=f"default: {FILE}, if it is there")
    parser.add_argument("--board", metavar="URI", help="the board's root, instead of the file's")
    parser.add_argument("--channel", help="the channel to follow, instead of the file's")
    add_options(parser, "--hosted-encoder")
    parser.add_argument("--stdio", action="store_true", help="speak MCP on stdin and stdout")
    parser.add_argument("--client", metavar="NAME", help="with --stdio: the client that is served")
    parser.add_argument(
        "--login", metavar="CATALOG/SERVER", help='sign in at an MCP server with auth = "oauth"'
    )
    parser.add_argument("--host", default=HOST, help="default: %(default)s")
    parser.add_argument(
        "--port", type=int, default=PORT, help="default: %(default)s; 0 takes a free one"
    )


def _serve(options: argparse.Namespace) -> int:
    if options.client is not None and not options.stdio:
        raise ConfigurationError(
            "--client without --stdio: over HTTP the token of each request says which client it "
            "comes from. Leave it out, or add --stdio."
        )
    import asyncio

    try:
        from pegboard.serve.calls.upstreams import sign_in
        from pegboard.serve.gateway import open_gateway
        from pegboard.serve.http.app import create_app
        from pegboard.serve.running import listen, serve_http, serve_stdio
        from pegboard.serve.settings import load_gateway_settings
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"`pegboard serve` needs {error.name}. Install: {install_command('uvicorn')}"
        ) from error

    file = options.config or (FILE if Path(FILE).is_file() else None)
    if options.login is not None:
        asyncio.run(sign_in(load_gateway_settings(file or FILE), options.login))
        print(f"Signed in at {options.login}; the tokens are kept encrypted.", file=sys.stderr)
        return 0
    board = options.board or (None if file else default_board())
    if file is None and board is None:
        raise ConfigurationError("No board is named. Expected --board URI or -c pegboard.toml.")
    if options.stdio:
        gateway = open_gateway(file, board, options.channel)
        gateway.access.stdio_client_name = options.client
        asyncio.run(serve_stdio(gateway))
        return 0
    host = options.host
    with listen(host, options.port) as listening:
        app = create_app(open_gateway(file, board, options.channel), host)
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{listening.getsockname()[1]}"
        print(f"pegboard serve: MCP at {address}/mcp, a page at {address}/", file=sys.stderr)
        return 0 if serve_http(app, listening) else 1
