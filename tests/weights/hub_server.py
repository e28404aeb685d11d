"""A hub of one repository on the loopback, as far as its client asks: listing, files, ranges."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "c0ffee" * 6 + "c0ff"


class HubServer(ThreadingHTTPServer):
    """Serves the files of a folder as one repository, and counts what was asked.

    Attributes:
        sent: bytes of each file that went out.
        cut_after: bytes after which a file's connection breaks; None for never.
    """

    daemon_threads = True

    def __init__(self, repo: str, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repo, self.folder = repo, folder
        self.sent: dict[str, int] = {}
        self.requests: list[str] = []
        self.cut_after: int | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the tests' output is theirs."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        path = self.path.partition("?")[0]
        if path.startswith(f"/api/models/{self.server.repo}"):
            self._json(self._listing())
            return
        prefix = f"/{self.server.repo}/resolve/{COMMIT}/"
        file = self.server.folder / path.removeprefix(prefix)
        if not path.startswith(prefix) or not file.is_file():
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._file(file, body=body)

    def _listing(self) -> dict[str, Any]:
        files = sorted(path for path in self.server.folder.iterdir())
        siblings = [{"rfilename": path.name, "size": path.stat().st_size} for path in files]
        return {"id": self.server.repo, "sha": COMMIT, "siblings": siblings, "tags": []}

    def _json(self, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _file(self, file: Path, *, body: bool) -> None:
        content = file.read_bytes()
        asked = self.headers.get("Range", "")
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        part = content[start:]
        self.send_response(206 if asked else 200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if not body:
            return
        cut = self.server.cut_after
        shown = part if cut is None or file.suffix != ".safetensors" else part[:cut]
        self.wfile.write(shown)
        self.server.sent[file.name] = self.server.sent.get(file.name, 0) + len(shown)
        self.close_connection = len(shown) < len(part)


@contextmanager
def serving(repo: str, folder: Path) -> Iterator[HubServer]:
    """A running server; ended with the block."""
    server = HubServer(repo, folder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
