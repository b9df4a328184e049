"""A hub of our own on the loopback: it answers the file API of the Hugging Face hub for local folders.

``with HubServer(datasets={"org/name": folder}, models={"org/name": folder}) as hub`` serves until the block ends;
``hub.environment(home)`` is what a process needs to talk to it, and to nothing else, with a cache of its own;
:func:`ask` starts such a process.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer(ThreadingHTTPServer):
    """Folders served as repositories with one commit, on a free port. ``requests`` logs method and path."""

    def __init__(self, *, datasets: Mapping[str, Path] | None = None, models: Mapping[str, Path] | None = None):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folders = {f"datasets/{name}": folder for name, folder in (datasets or {}).items()}
        self.folders |= {f"models/{name}": folder for name, folder in (models or {}).items()}
        self.requests: list[str] = []
        self.endpoint = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> HubServer:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()

    def environment(self, home: Path, **more: str) -> dict[str, str]:
        """The environment of a process that knows this hub alone and keeps its cache in ``home``."""
        others = ("HF_", "ISONB_", "TRANSFOR")
        local = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        local = {name: value for name, value in local.items() if not name.lower().endswith("_proxy")}
        fixed = {"HF_ENDPOINT": self.endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
        return local | fixed | {"OMP_NUM_THREADS": "1", "HF_HUB_DISABLE_XET": "1"} | more


ASK = """
import json, sys
from isonb.errors import InputError
{answer}
for request in json.loads(sys.argv[1]):
    try:
        print(json.dumps(answer(request)))
    except InputError as error:
        print(json.dumps([type(error).__name__, str(error)]))
"""


def ask(answer: str, environment: Mapping[str, str], *requests: Any) -> list[Any]:
    """What a function ``answer``, given as text, returns or raises for each request in one new process."""
    command = [sys.executable, "-c", ASK.format(answer=answer), json.dumps(requests)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return [json.loads(line) for line in run.stdout.splitlines()]


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are kept in the server's list, not printed."""

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        path = unquote(url.path).strip("/")
        self.server.requests.append(f"{self.command} {path}")
        for repository, folder in self.server.folders.items():
            kind, name = repository.split("/", 1)
            files = name if kind == "models" else repository
            if path.startswith(f"{files}/resolve/"):
                return self._file(folder, path.removeprefix(f"{files}/resolve/").partition("/")[2])
            if path == f"api/{repository}" or path.startswith(f"api/{repository}/"):
                place = path.removeprefix(f"api/{repository}").strip("/")
                return self._about(name, folder, place, body, parse_qs(url.query))
        return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})

    do_HEAD = do_POST = do_GET

    def _file(self, folder: Path, name: str) -> None:
        file = folder / name
        if not file.is_file():
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        content = file.read_bytes()
        first, last = 0, len(content) - 1
        span = self.headers.get("Range", "").removeprefix("bytes=").split("-")
        if span[0]:
            first, last = int(span[0]), min(int(span[1] or last), last)
        headers = {"ETag": f'"{_sha(file)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        if span[0]:
            headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return self._send(206 if span[0] else 200, content[first : last + 1], headers)

    def _about(self, name: str, folder: Path, asked: str, body: bytes, query: dict[str, list[str]]) -> None:
        what, _, rest = asked.partition("/")
        inside = rest.partition("/")[2]
        if what == "tree":
            every = sorted((folder / inside).rglob("*") if query.get("recursive") else (folder / inside).glob("*"))
            return self._json([_entry(folder, path) for path in every])
        if what == "paths-info":
            form = json.loads(body) if body.startswith(b"{") else parse_qs(body.decode())
            results = [folder / path for path in form["paths"] if (folder / path).exists()]
            return self._json([_entry(folder, path) for path in results])
        files = [{"rfilename": str(path.relative_to(folder))} for path in sorted(folder.rglob("*")) if path.is_file()]
        return self._json({"id": name, "sha": COMMIT, "private": False, "tags": [], "siblings": files})

    def _json(self, value: Any) -> None:
        return self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _sha(file: Path) -> str:
    return hashlib.sha1(file.read_bytes(), usedforsecurity=False).hexdigest()


def _entry(folder: Path, path: Path) -> dict[str, Any]:
    name = str(path.relative_to(folder))
    if path.is_dir():
        return {"type": "directory", "oid": hashlib.sha1(name.encode()).hexdigest(), "size": 0, "path": name}
    return {"type": "file", "oid": _sha(path), "size": path.stat().st_size, "path": name}
