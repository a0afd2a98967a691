"""The gateway behind a proxy: the Host and Origin that proxies send, `/mcp/`, nginx and Caddy."""

import asyncio
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager

import httpx2
import pytest

from pegboard.serve.settings import GatewaySettings, ServeSettings
from tests.pegboard.serve.office import text_of

PUBLIC = "tools.example"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def behind(served, desk_uri, desk):
    """A function: the address of a gateway with `allowed_hosts`."""

    @contextmanager
    def opened(*allowed):
        serve = ServeSettings(allowed_hosts=allowed)
        settings = GatewaySettings(serve=serve, catalogs=desk)
        with served(desk_uri, settings) as (url, _):
            yield url

    return opened


@pytest.mark.parametrize(
    ("allowed", "host", "origin"),
    [
        (PUBLIC, PUBLIC, None),  # Caddy
        (PUBLIC, PUBLIC, f"https://{PUBLIC}"),
        (PUBLIC, f"{PUBLIC}:8443", f"https://{PUBLIC}:8443"),
        (PUBLIC, None, f"https://{PUBLIC}"),  # nginx
        (f"{PUBLIC}:8443", f"{PUBLIC}:8443", None),
        (f"{PUBLIC}:8443", None, f"https://{PUBLIC}:8443"),
    ],
)
def test_requests_of_a_proxy_with_an_allowed_name_are_served(behind, allowed, host, origin):
    headers = {"Host": host, "Origin": origin}
    sent = {name: value for name, value in headers.items() if value}

    with behind(allowed) as url:
        answers = [
            httpx2.post(url, json=INITIALIZE, headers={**ACCEPT, **sent}),
            httpx2.get(url.replace("/mcp", "/v1/status"), headers=sent),
            httpx2.get(url.replace("/mcp", "/"), headers=sent),
        ]

    assert [answer.status_code for answer in answers] == [200] * 3


@pytest.mark.parametrize(
    ("allowed", "host", "origin", "name"),
    [
        ((), PUBLIC, None, PUBLIC),
        ((), None, f"https://{PUBLIC}", PUBLIC),
        ((PUBLIC,), "evil.example", None, "evil.example"),
        ((PUBLIC,), PUBLIC, "https://evil.example", "evil.example"),
        ((PUBLIC,), None, f"https://{PUBLIC}:9999", f"{PUBLIC}:9999"),
        ((PUBLIC,), None, f"https://{PUBLIC}.evil.example", f"{PUBLIC}.evil.example"),
        ((f"{PUBLIC}:8443",), PUBLIC, None, PUBLIC),
    ],
)
def test_other_names_are_refused_and_the_setting_is_named(behind, allowed, host, origin, name):
    headers = {"Host": host, "Origin": origin}
    sent = {key: value for key, value in headers.items() if value}

    with behind(*allowed) as url:
        answer = httpx2.post(url, json=INITIALIZE, headers={**ACCEPT, **sent})

    error = answer.json()["error"]
    assert answer.status_code == 403
    assert "allowed_hosts" in error["next_step"]
    assert repr(name) in error["next_step"]


def test_a_slash_at_the_end_needs_no_redirect(behind, over_http):
    async def run(url):
        async with over_http(f"{url}/") as client:
            return await client.call_tool("echo", {"text": "x"})

    with behind() as url:
        answer = httpx2.post(f"{url}/", json=INITIALIZE, headers=ACCEPT, follow_redirects=False)
        called = asyncio.run(run(url))

    assert answer.status_code == 200
    assert text_of(called) == "x"


NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://{gateway}; {more} }}
  }}
}}
"""
BUFFERING_OFF = """
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_buffering off;
    proxy_read_timeout 3600s;
"""
CADDY = """
{{
  admin off
  auto_https off
}}
http://{name}:{port} {{
  bind 127.0.0.1
  reverse_proxy {gateway}
}}
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@contextmanager
def proxy(kind, folder, url):
    """Run a proxy in front of a gateway; give its port."""
    program = "nginx" if kind.startswith("nginx") else "caddy"
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    values = {
        "folder": folder,
        "port": free_port(),
        "gateway": url.removeprefix("http://").removesuffix("/mcp"),
        "name": PUBLIC,
        "more": BUFFERING_OFF if kind == "nginx as documented" else "",
    }
    file = folder / "proxy.conf"
    file.write_text((CADDY if program == "caddy" else NGINX).format(**values))
    command = {
        "nginx": ["nginx", "-e", str(folder / "error.log"), "-c", str(file)],
        "caddy": ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)],
    }[program]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=folder) as running:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", values["port"])).close()
                    break
                except OSError:
                    assert running.poll() is None, (folder / "error.log").read_text()
                    time.sleep(0.05)
            yield values["port"]
        finally:
            running.terminate()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nginx", "nginx as documented", "Caddy"])
def test_a_client_calls_a_tool_with_progress_through_a_proxy(
    behind, over_http, tmp_path, kind, era
):
    seen = []

    async def note(progress, total, message):
        seen.append(progress)

    async def run(url):
        headers = {"Host": PUBLIC, "Origin": f"http://{PUBLIC}"}
        async with over_http(url, headers) as client:
            await client.call_tool("echo", {"text": "opens the session with the desk"})
            found = await client.call_tool("search_tools", {"query": "echo"})
            done = await client.call_tool("report_progress", {}, progress_callback=note)
            return found, done

    with behind(PUBLIC) as url, proxy(kind, tmp_path, url) as port:
        found, done = asyncio.run(run(f"http://127.0.0.1:{port}/mcp"))

    assert "echo" in text_of(found)
    assert text_of(done) == "Done."
    assert seen == [1, 2, 3]
