"""Gateways of this machine: the real program, each in a home of its own, reached over TLS on loopback."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OAP = os.environ.get("OAP_MEMORY", "target/debug/oap-memory")
PATIENCE = 90
"""Seconds that are waited for what the gateways do by themselves."""


class Gateway:
    """A principal's gateway and its owner's commands."""

    def __init__(self, name: str, folder: Path) -> None:
        """Makes its home, and a certificate of its own with its first start."""
        self.name = name
        self.folder = folder / name
        self.folder.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.did = f"did:web:localhost%3A{self.port}"
        self.origin = f"https://localhost:{self.port}"
        self.authorities = folder / "authorities.pem"
        self.flags: list[str] = []
        self.process: subprocess.Popen[str] | None = None
        key, listen = str(self.folder / "master.key"), f"127.0.0.1:{self.port}"
        self.run("init", "--did", self.did, "--key-file", key, "--listen", listen)
        self.serve()
        self.stop()

    def command(self, *arguments: str) -> list[str]:
        """A command of its owner's."""
        return [OAP, "--home", str(self.folder / "home"), *self.flags, *arguments]

    def ran(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command, whatever became of it."""
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=120)

    def run(self, *arguments: str) -> str:
        """What a command says that does what it is to do."""
        done = self.ran(*arguments)
        assert done.returncode == 0, (self.name, arguments, done.stdout, done.stderr)
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """The same, for programs."""
        return json.loads(self.run(*arguments, "--json"))

    def refused(self, status: int, says: str, *arguments: str) -> None:
        """A command that is refused, and says why."""
        done = self.ran(*arguments)
        assert done.returncode == status and says in done.stderr, (self.name, arguments, done)

    def file(self, name: str) -> Path:
        """A file of its owner's."""
        return self.folder / name

    def read(self, name: str) -> Any:
        """What stands in one."""
        return json.loads(self.file(name).read_text())

    def document(self) -> Any:
        """Its DID document."""
        return json.loads((self.folder / "home" / "did.json").read_text())

    def certificate(self) -> str:
        """The certificate that it made for itself."""
        return (self.folder / "home" / "tls" / "cert.pem").read_text()

    def serve(self) -> None:
        """Starts it, and waits until it serves."""
        self.process = subprocess.Popen(
            self.command("serve"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={name: value for name, value in os.environ.items() if name != "RUST_LOG"},
        )
        log = self.process.stdout
        assert log
        before = []
        while "serving" not in (line := log.readline()):
            before.append(line)
            if not line:
                raise SystemExit(f"{self.name} did not begin to serve: {''.join(before)}")
        # What it logs from now on is read, so that it never waits for a reader.
        threading.Thread(target=log.read, daemon=True).start()

    def stop(self) -> None:
        """Ends it."""
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None


class Town:
    """Gateways that trust each other's certificates; gone, with everything of theirs, at the end."""

    def __init__(self, *names: str) -> None:
        """Makes them, and starts them."""
        self.folder = Path(tempfile.mkdtemp(prefix="oap-delegate-"))
        self.gateways: list[Gateway] = []
        try:
            for name in names:
                self.gateways.append(Gateway(name, self.folder))
            authorities = "".join(gateway.certificate() for gateway in self.gateways)
            (self.folder / "authorities.pem").write_text(authorities)
            for gateway in self.gateways:
                gateway.flags = ["--trust-ca", str(gateway.authorities), "--allow-local-dids"]
                gateway.serve()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Ends all of them."""
        for gateway in self.gateways:
            gateway.stop()
        shutil.rmtree(self.folder)


def until(what: str, look: Callable[[], Any]) -> Any:
    """Looks until there is something: letters between gateways have their own time."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        if time.monotonic() > end:
            raise SystemExit(f"it never came to this: {what}")
        time.sleep(0.1)
    return found
