"""A gateway for tests: the real binary over TLS on loopback, in a folder of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

from portable import ROOT

BINARY = Path(os.environ.get("OAP_MEMORY") or ROOT / "target" / "debug" / "oap-memory")
SECONDS = 60
"""For any one command."""


class Gateway:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.did = f"did:web:localhost%3A{self.port}"
        self.run("init", "--did", self.did, "--key-file", str(folder / "master.key"))
        self._server = subprocess.Popen(
            [BINARY, "--home", folder / "home", "--allow-local-dids", "serve", "--listen", f"127.0.0.1:{self.port}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "RUST_LOG": "info"},
        )
        assert self._server.stdout is not None
        for line in self._server.stdout:
            if "serving" in line:
                break
        else:
            raise AssertionError("the gateway did not begin to serve")
        # What it says further goes nowhere: a full pipe would hold it up.
        self._drain = subprocess.Popen(["cat"], stdin=self._server.stdout, stdout=subprocess.DEVNULL)

    @property
    def origin(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def ca_file(self) -> str:
        return str(self.folder / "home" / "tls" / "cert.pem")

    @property
    def document(self) -> Any:
        return json.loads((self.folder / "home" / "did.json").read_text())

    def run(self, *arguments: str, status: int = 0) -> str:
        done = subprocess.run(
            [BINARY, "--home", self.folder / "home", *arguments], capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == status, (arguments, done.stdout, done.stderr)
        return done.stdout

    def item(self, text: str, *more: str) -> str:
        return self.run("item", "add", "--kind", "fact", "--text", text, "--label", "website", *more).strip()

    def agent(self, name: str, permission: str = "write") -> str:
        """Makes an agent; its API key."""
        key: str = json.loads(self.run("agent", "add", name, "--permission", permission, "--json"))["api_key"]
        return key

    def grant(self, grantee: str, *more: str) -> Any:
        file = self.folder / f"grant-{len(list(self.folder.iterdir()))}.json"
        self.run(
            *("grant", "issue", "--to", grantee, "--purpose", "Website redesign", "--label", "website"),
            *("--until", "30d", "--trust-level", "2", "--out", str(file), *more),
        )
        return json.loads(file.read_text())

    def stop(self) -> None:
        self._server.terminate()
        self._server.wait(SECONDS)
        self._drain.wait(SECONDS)
