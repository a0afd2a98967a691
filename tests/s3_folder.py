"""A folder served as an S3 bucket, for reading, to the holders of accepted access keys."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


@dataclass
class S3Folder:
    """A bucket in a folder, and who may read it.

    Attributes:
        endpoint: the server's address.
        accepted: the access keys that are accepted.
        issued: the access key that the server issues as a container's credentials.
        refused: the access keys of the refused requests, in their order.
    """

    folder: Path
    endpoint: str = ""
    accepted: set[str] = field(default_factory=set)
    issued: str = ""
    refused: list[str] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET with ranges, HEAD and ListObjectsV2; refusals repeat what was sent, as S3's do.
    `/credentials` issues credentials as the endpoint of a container does.

    Speaks HTTP/1.0, so each response ends its connection.
    """

    bucket: S3Folder

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/credentials":
            self._issue()
            return
        authorization = self.headers.get("authorization", "")
        key = re.search(r"Credential=([^/]+)/", authorization)
        if key is None or key[1] not in self.bucket.accepted:
            self._refuse(key[1] if key else "")
            return
        path = unquote(address.path).split("/", 2)[2:]
        query = parse_qs(address.query)
        if "list-type" in query:
            prefix = query.get("prefix", [""])[0]
            self._send(200, _listing(self.bucket.folder, prefix, "delimiter" in query))
            return
        file = self.bucket.folder / "".join(path)
        if not file.is_file():
            self._send(404, _error("NoSuchKey", "The specified key does not exist."))
            return
        self._send_file(file.read_bytes())

    do_HEAD = do_GET  # noqa: N815

    def _issue(self) -> None:
        values = {
            "AccessKeyId": self.bucket.issued,
            "SecretAccessKey": "issued-secret",
            "Token": "issued-token",
            "Expiration": "2099-01-01T00:00:00Z",
        }
        self._send(200, json.dumps(values).encode())

    def _refuse(self, key: str) -> None:
        self.bucket.refused.append(key)
        token = self.headers.get("x-amz-security-token", "")
        message = "The AWS Access Key Id you provided does not exist in our records."
        further = f"<AWSAccessKeyId>{key}</AWSAccessKeyId><Token-0>{token}</Token-0>"
        self._send(403, _error("InvalidAccessKeyId", message, further))

    def _send_file(self, content: bytes) -> None:
        requested = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("range", ""))
        if requested is None:
            self._send(200, content)
            return
        start, end = requested.groups()
        first = int(start) if start else max(len(content) - int(end), 0)
        last = min(int(end), len(content) - 1) if start and end else len(content) - 1
        self._send(206, content[first : last + 1], f"bytes {first}-{last}/{len(content)}")

    def _send(self, status: int, content: bytes, content_range: str = "") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.send_header("last-modified", formatdate(0, usegmt=True))
        self.send_header("etag", '"1"')
        if content_range:
            self.send_header("content-range", content_range)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None: ...


def _error(code: str, message: str, further: str = "") -> bytes:
    return f"<Error><Code>{code}</Code><Message>{message}</Message>{further}</Error>".encode()


def _listing(folder: Path, prefix: str, is_flat: bool) -> bytes:
    """Return the objects below a prefix as ListObjectsV2 does, on one page.

    Args:
        is_flat: whether objects in deeper folders are replaced by their folder.
    """
    entries: dict[str, str] = {}
    files = (path for path in folder.rglob("*") if path.is_file())
    for name, size in sorted(
        (str(file.relative_to(folder)), file.stat().st_size) for file in files
    ):
        if not name.startswith(prefix):
            continue
        parent, slash, _ = name[len(prefix) :].partition("/")
        if is_flat and slash:
            shared = escape(f"{prefix}{parent}/")
            entries[shared] = f"<CommonPrefixes><Prefix>{shared}</Prefix></CommonPrefixes>"
            continue
        entries[name] = (
            f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size><ETag>1</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        )
    return (
        f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(entries.values())}"
        "</ListBucketResult>"
    ).encode()


@contextmanager
def serve_folder(folder: Path) -> Iterator[S3Folder]:
    """Serve a folder as any bucket of an S3 endpoint on loopback."""
    bucket = S3Folder(folder)
    handler = type("Handler", (_Handler,), {"bucket": bucket})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    bucket.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield bucket
    finally:
        server.shutdown()
        server.server_close()
