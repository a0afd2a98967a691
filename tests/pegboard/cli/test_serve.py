"""`pegboard serve`: what it says where it cannot start."""

import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress

from pegboard.cli.main import main
from tests.children import start_child


def test_without_the_extra_it_says_how_to_install_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pegboard.serve.http.app", None)

    assert main(["serve", "--board", "board"]) == 2
    assert "pip install './index[serve]' in Pegboard's checkout" in capsys.readouterr().err


def test_without_a_board_it_says_what_to_name(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PEGBOARD_BOARD", raising=False)

    assert main(["serve"]) == 2
    assert "Expected --board URI or -c pegboard.toml" in capsys.readouterr().err


def test_it_listens_to_other_machines_only_with_tokens(board_uri, capsys):
    assert main(["serve", "--board", board_uri, "--host", "0.0.0.0", "--port", "0"]) == 2
    said = capsys.readouterr().err
    assert "anyone could call the tools" in said
    assert "MCP at" not in said


def test_an_address_that_cannot_be_had_is_named_before_the_board_is_opened(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        used = str(other.getsockname()[1])
        for host, port, why in (
            ("127.0.0.1", used, "Address already in use"),
            ("127.0.0.1", "99999", ""),
            ("203.0.113.1", used, ""),
        ):
            address = ["--host", host, "--port", port]
            assert main(["serve", "--board", str(tmp_path / "none"), *address]) == 2
            said = capsys.readouterr().err
            assert f"Cannot listen on {host}, port {port}: {why}" in said
            assert "--port 0" in said


def test_a_gateway_that_cannot_start_ends_with_an_error(board_uri, monkeypatch):
    monkeypatch.setattr("pegboard.serve.http.app.following_changes", lambda *_: None)

    assert main(["serve", "--board", board_uri, "--port", "0"]) == 1


def test_a_second_ctrl_c_ends_it_without_a_traceback_while_a_client_holds_a_request_open(board_uri):
    command = [sys.executable, "-m", "pegboard", "serve", "--board", board_uri, "--port", "0"]
    with start_child(command, stderr=subprocess.PIPE, text=True) as gateway:
        port = int(re.search(r":(\d+)/mcp", gateway.stderr.readline())[1])
        with socket.create_connection(("127.0.0.1", port)) as client:
            headers = "Host: 127.0.0.1\r\nContent-Length: 9\r\nExpect: 100-continue"
            client.sendall(f"POST /v1/call HTTP/1.1\r\n{headers}\r\n\r\n".encode())
            assert client.recv(12) == b"HTTP/1.1 100"  # the body is waited for
            gateway.send_signal(signal.SIGINT)
            with suppress(ConnectionError):
                while True:  # until it listens no more
                    socket.create_connection(("127.0.0.1", port)).close()
            gateway.send_signal(signal.SIGINT)

            assert gateway.wait() == 0
            assert gateway.stderr.read() == ""


def test_ctrl_c_ends_it_over_stdio_while_its_client_is_there(board_uri):
    command = [sys.executable, "-m", "pegboard", "serve", "--board", board_uri, "--stdio"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start_child(command, text=True, bufsize=1, **pipes) as gateway:
        gateway.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        assert '"id":1' in gateway.stdout.readline()
        gateway.send_signal(signal.SIGINT)

        assert gateway.wait() == 130
        assert "Traceback" not in gateway.stderr.read()


def test_a_client_is_not_named_over_http(tmp_path, capsys):
    assert main(["serve", "--board", str(tmp_path), "--client", "ana"]) == 2
    assert "--client without --stdio" in capsys.readouterr().err


def test_all_problems_of_the_settings_are_reported_at_once(tmp_path, capsys):
    file = tmp_path / "pegboard.toml"
    file.write_text(
        '[board]\nuri = "board"\n[serve]\nmodus = "gateway"\n'
        '[serve.clients.ana]\ntoken = ["plain", "x${TOKEN}"]\nallow = ["office/*"]\n'
        '[serve.apis.x]\nbase_url = "ftp://x"\n'
    )

    assert main(["serve", "-c", str(file), "--port", "0"]) == 2
    said = capsys.readouterr().err
    assert "serve.modus: no such setting; did you mean 'mode'?" in said
    for place in ("0", "1"):
        assert f"serve.clients.ana.token.{place}: secrets are not allowed in the file" in said
    assert "serve.clients.ana.allow.0: expected a table" in said
    assert "serve.apis.x.base_url: expected an address" in said
