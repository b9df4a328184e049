"""JupyterLab as its users start it, on a folder."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

TOKEN = "0123456789abcdef"


def listening(folder):
    """The port of the server whose file lies in ``folder``, once it can be reached: the file may come before that."""
    for file in folder.glob("jpserver-*.json"):
        with contextlib.suppress(OSError, ValueError):
            port = json.loads(file.read_text())["port"]
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                return port
    return None


def requests(url, path, method="GET", body=None):
    """The server's answer, as JSON where there is one."""
    headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/api/{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or "null")


def end_kernels(url):
    """Shuts down every notebook's kernel: a reader of thirty chapters needs one at a time."""
    for session in requests(url, "sessions"):
        requests(url, f"sessions/{session['id']}", "DELETE")


def idle_kernel(url, seconds=180):
    """Waits for a kernel that is ready. The server is asked: the page's status line may miss a change of state."""
    end = time.monotonic() + seconds
    while not any(session["kernel"]["execution_state"] == "idle" for session in requests(url, "sessions")):
        assert time.monotonic() < end, requests(url, "sessions")
        time.sleep(0.2)


@contextlib.contextmanager
def jupyter_lab(folder, home, *arguments):
    """`jupyter lab` in ``folder``, with nothing of the user's own but what lies in ``home``; its address."""
    folders = {f"JUPYTER_{name}_DIR": str(home / name) for name in ("RUNTIME", "CONFIG", "DATA")}
    options = ["--no-browser", "--ServerApp.port=0", f"--IdentityProvider.token={TOKEN}", "--allow-root"]
    with (home / "log").open("w") as log:
        command = [Path(sys.executable).with_name("jupyter"), "lab", *arguments, *options]
        server = subprocess.Popen(command, cwd=folder, env={**os.environ, **folders}, stdout=log, stderr=log)
    try:
        end = time.monotonic() + 120
        while not (port := listening(home / "RUNTIME")):
            assert server.poll() is None, (home / "log").read_text()
            assert time.monotonic() < end, (home / "log").read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(20)
        server.kill()
        server.wait()
