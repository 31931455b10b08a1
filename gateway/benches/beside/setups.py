"""How each memory is had: installed in exactly one version, started in a folder of its own, and ended."""

import asyncio
import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from measured import Left, Memory
from memories import BasicMemory, Mem0, OurGateway, OurMcp, ServerMemory

MEM0, BASIC_MEMORY, SERVER_MEMORY = "2.2.1", "0.23.2", "2026.8.31"
TOOLS = Path(os.environ.get("TMPDIR") or "/tmp") / "oap-interop" / "beside"
INSTALLING = 1200
"""Seconds for one installation."""
CALLERS = (1, 16)
AGENTS = 4
"""Over HTTP, each may ask 600 times in a minute (docs/limits.md, `refusals::MAX_AGENT_REQUESTS`)."""
HERE = Path(__file__).parent


def ran(*command: str | Path) -> str:
    """A command of an installation."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALLING, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Left(str(error)) from error
    if done.returncode:
        raise Left(f"{Path(command[0]).name}: {(done.stderr or done.stdout).strip().rpartition(chr(10))[2]}")
    return done.stdout


def environment(name: str, version: str, python: str) -> Path:
    """A Python environment with one package; its programs."""
    folder = TOOLS / f"{name}-{version}"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        ran(python, "-m", "venv", folder)
        ran(
            folder / "bin" / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            f"{name}=={version}",
        )
        (folder / "whole").touch()
    return folder / "bin"


def python_of(major: int, minor: int) -> str:
    """A Python that is new enough."""
    own = Path.home() / ".pyenv" / "versions"
    known = [
        sys.executable,
        *(shutil.which(f"python3.{n}") for n in range(minor, minor + 4)),
        *own.glob("3.*/bin/python"),
    ]
    for python in filter(None, known):
        with contextlib.suppress(Left):
            version = ran(python, "-c", "import sys; print(*sys.version_info[:2])")
            if tuple(map(int, version.split())) >= (major, minor):
                return str(python)
    raise Left(f"it needs Python {major}.{minor}")


@contextlib.asynccontextmanager
async def over_stdio(command: list[str], folder: Path, more: dict[str, str]) -> AsyncIterator[Client]:
    """A session with a server of MCP that sees nothing of this machine but the folder."""
    here = {"HOME": str(folder), "PATH": os.environ["PATH"], **more}
    server = StdioServerParameters(command=command[0], args=command[1:], env=here, cwd=folder)
    with (folder / "log").open("w") as log:
        async with Client(stdio_client(server, errlog=log)) as client:
            yield client


class Home:
    """A home of ours."""

    def __init__(self, folder: Path) -> None:
        self.program = os.environ.get("OAP_MEMORY") or shutil.which("oap-memory") or ""
        if not self.program:
            raise Left("OAP_MEMORY does not say where the program is")
        self.home = str(folder / "home")
        self.run("init", "--did", "did:key", "--key-file", str(folder / "key"))

    def agent(self, name: str) -> str:
        """Makes an agent; its API key."""
        return json.loads(self.run("agent", "add", name))["api_key"]

    def run(self, *arguments: str) -> str:
        """A command of the owner's."""
        return ran(self.program, "--home", self.home, "--json", *arguments)


@contextlib.asynccontextmanager
async def our_gateway(folder: Path, callers: int) -> AsyncIterator[Memory]:
    """A gateway on loopback, without TLS, as behind a proxy."""
    home = Home(folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve = [home.program, "--home", home.home, "serve", "--plain-http", "--listen", f"127.0.0.1:{port}"]
    with (folder / "log").open("w") as log:
        # A line for each request is not what is measured.
        quiet = {**os.environ, "RUST_LOG": "warn,oap_gateway::system=info"}
        server = await asyncio.create_subprocess_exec(*serve, stdout=log, stderr=asyncio.subprocess.PIPE, env=quiet)
        try:
            while line := await asyncio.wait_for(server.stderr.readline(), 60):
                if b"serving" in line:
                    break
            else:
                raise Left("it does not serve")
            yield OurGateway(port, [home.agent(f"scout{n}") for n in range(AGENTS)], callers)
        finally:
            server.terminate()
            await server.communicate()


@contextlib.asynccontextmanager
async def our_mcp(folder: Path) -> AsyncIterator[Memory]:
    """As an assistant starts it."""
    home = Home(folder)
    home.agent("scout")
    command = [home.program, "--home", home.home, "mcp", "--agent", "scout"]
    async with over_stdio(command, folder, {}) as client:
        yield OurMcp(client)


@contextlib.asynccontextmanager
async def mem0(folder: Path) -> AsyncIterator[Memory]:
    """The library in a process of its own."""
    programs = environment("mem0ai", MEM0, python_of(3, 10))
    command = [str(programs / "python"), str(HERE / "mem0_side.py"), str(folder)]
    with (folder / "log").open("w") as log:
        pipe = asyncio.subprocess.PIPE
        here = {"HOME": str(folder), "PATH": os.environ["PATH"]}
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=log, env=here)
        try:
            if not await asyncio.wait_for(process.stdout.readline(), 120):
                raise Left((folder / "log").read_text().strip().rpartition("\n")[2])
            yield Mem0(process, MEM0)
        finally:
            process.stdin.close()
            await process.wait()


@contextlib.asynccontextmanager
async def basic_memory(folder: Path) -> AsyncIterator[Memory]:
    """Without its model: `BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED=false`."""
    programs = environment("basic-memory", BASIC_MEMORY, python_of(3, 12))
    off = {"BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false", "BASIC_MEMORY_AUTO_UPDATE": "false", "HF_HUB_OFFLINE": "1"}
    async with over_stdio([str(programs / "basic-memory"), "mcp"], folder, off) as client:
        yield BasicMemory(client, BASIC_MEMORY)


@contextlib.asynccontextmanager
async def server_memory(folder: Path) -> AsyncIterator[Memory]:
    """In any Node from 18 on."""
    name = "@modelcontextprotocol/server-memory"
    root = TOOLS / f"server-memory-{SERVER_MEMORY}"
    if not (node := shutil.which("node")):
        raise Left("there is no node")
    if not (root / "whole").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        quiet = ["--silent", "--no-fund", "--no-audit", "--no-update-notifier", "--ignore-scripts"]
        ran("npm", "install", *quiet, "--prefix", root, f"{name}@{SERVER_MEMORY}")
        (root / "whole").touch()
    program = root / "node_modules" / name / "dist" / "index.js"
    async with over_stdio([node, str(program)], folder, {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}) as client:
        yield ServerMemory(client, SERVER_MEMORY)


SETUPS = {
    "oap-memory": [*(functools.partial(our_gateway, callers=callers) for callers in CALLERS), our_mcp],
    "mem0": [mem0],
    "basic-memory": [basic_memory],
    "server-memory": [server_memory],
}
