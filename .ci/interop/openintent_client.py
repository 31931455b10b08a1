"""The real OpenIntent client (PyPI `openintent`), sync and async, drives the real program. `$OAP_MEMORY` is the program."""

import asyncio
import contextlib
import inspect
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from openintent import AsyncOpenIntentClient, OpenIntentClient
from openintent.exceptions import ConflictError, NotFoundError, OpenIntentError
from openintent.models import EventType, MemoryEntry, MemoryPriority, MemorySensitivity, MemoryType, TaskStatus

PROGRAM = os.environ["OAP_MEMORY"]
# Big integers, another order of members than the alphabet's, other scripts, and what a detector would find.
ODD = {"z": 2**80 + 1, "a": {"b": [1.5, None, True, {}], "": "日本語 🦀"}, "mail": "ann@example.com", "_sd": []}
NEVER = "mem_01J9V8B7H1ZK4D2A0M9R8F0KQX"
# What the client has for memory. One that is new is to be driven here, too.
METHODS = {"create_memory", "get_memory", "list_memory", "update_memory", "delete_memory"}

# A word that stands nowhere else.
MARK = "quetzalcoatlus-northropi-4711"

Call = Callable[..., Any]


def sealed(home: str) -> None:
    """That no file of the home has what entries say, or said."""
    for file in Path(home).rglob("*"):
        assert not file.is_file() or MARK.encode() not in file.read_bytes(), file


async def refuses(kind: type[OpenIntentError], status: int, call: Any) -> OpenIntentError:
    """That a call is refused so, and as no other kind of error."""
    try:
        await call
    except OpenIntentError as error:
        assert type(error) is kind and error.status_code == status, (type(error), error.status_code, error.response)
        return error
    raise AssertionError(f"not refused with {status}")


async def drive(mine: Call, other: Call, agent: str, tag: str) -> None:
    """Everything that the client can ask of memory; `tag` keeps the keys of one drive from those of another."""
    for tier in MemoryType:
        key = f"{tag}-{tier.value}"
        made = await mine(
            "create_memory",
            agent,
            "odd",
            key,
            ODD,
            memory_type=tier.value,
            tags=["z", "a"],
            priority="high",
            pinned=True,
        )
        assert isinstance(made, MemoryEntry), made
        assert (made.agent_id, made.namespace, made.key, made.version) == (agent, "odd", key, 1), made
        assert json.dumps(made.value) == json.dumps(ODD), made.value
        assert made.memory_type is tier and made.tags == ["z", "a"] and made.pinned, made
        assert made.priority is MemoryPriority.HIGH and made.sensitivity is MemorySensitivity.INTERNAL, made
        assert made.created_at == made.updated_at and made.created_at.tzinfo is not None, made
        read = await mine("get_memory", made.id)
        assert read == made and json.dumps(read.value) == json.dumps(ODD), (read, made)
        # A key is taken, and whoever finds it taken is told by what.
        taken = await refuses(ConflictError, 409, mine("create_memory", agent, "odd", key, {}, memory_type=tier.value))
        assert taken.current_version == 1 and taken.response["current"]["id"] == made.id, taken.response
        changed = await mine("update_memory", made.id, 1, value={"n": 1}, tags=["b"], pinned=False, priority="low")
        assert (changed.version, changed.value, changed.tags, changed.pinned) == (2, {"n": 1}, ["b"], False), changed
        assert changed.priority is MemoryPriority.LOW and changed.created_at == made.created_at, changed
        stale = await refuses(ConflictError, 409, mine("update_memory", made.id, 1, value={}))
        assert stale.current_version == 2 and stale.response["current"]["value"] == {"n": 1}, stale.response
        assert stale.message, stale
        # What is semantic is for all, and what is not is not there for another.
        if tier is MemoryType.SEMANTIC:
            assert await other("get_memory", made.id) == changed
            assert changed.curated_by == agent, changed
            await refuses(OpenIntentError, 403, other("update_memory", made.id, 2, value={}))
        else:
            await refuses(NotFoundError, 404, other("get_memory", made.id))
            await refuses(NotFoundError, 404, other("delete_memory", made.id))
    listed = await mine("list_memory", agent, namespace="odd")
    assert [entry.key for entry in listed] == [f"{tag}-{tier}" for tier in ("semantic", "episodic", "working")], listed
    for options, count in [
        ({"memory_type": "working"}, 1),
        ({"memory_type": "working", "tags": ["b"]}, 1),
        ({"tags": ["b", "none"]}, 0),
        ({"limit": 2}, 2),
        ({"limit": 2, "offset": 2}, 1),
        ({"namespace": "none"}, 0),
    ]:
        found = await mine("list_memory", agent, **{"namespace": "odd", **options})
        assert len(found) == count, (options, found)
    assert [entry.memory_type for entry in await other("list_memory", agent, namespace="odd")] == [MemoryType.SEMANTIC]
    await refuses(OpenIntentError, 413, mine("create_memory", agent, "odd", "large", {"x": "x" * 70_000}))
    await refuses(OpenIntentError, 422, mine("create_memory", agent, "odd", "tier", {}, memory_type="magic"))
    await refuses(OpenIntentError, 422, mine("create_memory", agent, "odd", "task", {}, ttl="task_lifetime"))
    lives = await mine(
        "create_memory",
        agent,
        "odd",
        f"{tag}-day",
        {},
        ttl="duration:PT24H",
        scope={"task_id": "t"},
        sensitivity="restricted",
    )
    assert (lives.expires_at - lives.created_at).total_seconds() == 86_400, lives
    assert lives.ttl == "duration:PT24H" and lives.scope.task_id == "t", lives
    assert lives.sensitivity is MemorySensitivity.RESTRICTED, lives
    for entry in [*listed, lives]:
        assert await mine("delete_memory", entry.id) is None
        await refuses(NotFoundError, 404, mine("get_memory", entry.id))
    assert await mine("list_memory", agent) == []
    for missing in (NEVER, "not-an-id"):
        await refuses(NotFoundError, 404, mine("get_memory", missing))
        await refuses(NotFoundError, 404, mine("update_memory", missing, 1, value={}))
        await refuses(NotFoundError, 404, mine("delete_memory", missing))


async def coordinate(lead: Call, worker: Call, stranger: Call) -> None:
    """A coordinator gives a task away, reads what is written for it while it is open, and its archive afterwards."""
    intent = await lead("create_intent", "Invoices", "Count them")
    assert (intent.title, intent.version, intent.created_by) == ("Invoices", 1, "lead"), intent
    assert (await lead("get_intent", intent.id)).id == intent.id
    task = await lead(
        "create_task", intent.id, "count", assigned_agent="scout", memory_policy={"archive_on_completion": True}
    )
    assert (task.status, task.assigned_agent, task.requires_tools) == (TaskStatus.PENDING, "scout", []), task
    note = await worker("create_memory", "scout", "job", "progress", ODD, scope={"task_id": task.id}, tags=["b"])
    assert await lead("get_memory", note.id) == note
    assert [entry.id for entry in await lead("list_memory", "scout", namespace="job")] == [note.id]
    await refuses(OpenIntentError, 403, lead("update_memory", note.id, 1, value={}))
    await refuses(OpenIntentError, 403, lead("delete_memory", note.id))
    for method, *arguments in [
        ("get_memory", note.id),
        ("get_intent", intent.id),
        ("get_events", intent.id),
        ("get_task", task.id),
        ("list_tasks", intent.id),
        ("update_task", task.id, 1, "completed"),
    ]:
        await refuses(NotFoundError, 404, stranger(method, *arguments))
    running = await worker("update_task", task.id, task.version, "running")
    stale = await refuses(ConflictError, 409, worker("update_task", task.id, task.version, "failed"))
    assert stale.current_version == running.version, stale.response
    done = await worker("update_task", task.id, running.version, "completed")
    assert done.status is TaskStatus.COMPLETED, done
    assert [found.status for found in await lead("list_tasks", intent.id)] == [TaskStatus.COMPLETED]
    for who in (lead, worker):
        await refuses(NotFoundError, 404, who("get_memory", note.id))
    events = await lead("get_events", intent.id, limit=1000)
    assert [event.event_type for event in events] == [
        EventType.TASK_CREATED,
        EventType.MEMORY_CREATED,
        EventType.TASK_STARTED,
        EventType.MEMORY_ARCHIVED,
        EventType.TASK_COMPLETED,
    ], events
    created, archived = events[1], events[3]
    assert "value" not in created.payload and created.actor == "scout", created
    snapshot = archived.payload["snapshot"]
    assert archived.payload["entries_archived"] == 1 and snapshot[0]["value"] == ODD, snapshot
    only = await worker("get_events", intent.id, event_type=EventType.MEMORY_ARCHIVED, since=archived.created_at)
    assert [event.id for event in only] == [archived.id], only


def sync_calls(client: OpenIntentClient) -> Call:
    """The sync client's methods, as if they were async."""

    async def call(method: str, *arguments: Any, **options: Any) -> Any:
        return getattr(client, method)(*arguments, **options)

    return call


def async_calls(client: AsyncOpenIntentClient) -> Call:
    """The async client's methods."""

    async def call(method: str, *arguments: Any, **options: Any) -> Any:
        return await getattr(client, method)(*arguments, **options)

    return call


def run(home: str, *arguments: str) -> dict[str, Any]:
    """A command of the owner's."""
    done = subprocess.run([PROGRAM, "--home", home, "--json", *arguments], check=True, capture_output=True)
    return json.loads(done.stdout)


@contextlib.contextmanager
def served(home: str, port: int) -> Iterator[None]:
    """A running gateway."""
    command = [PROGRAM, "--home", home, "serve", "--plain-http", "--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert any("serving" in line for line in server.stderr), "it does not serve"
            yield
        finally:
            server.terminate()
            server.stderr.read()


async def main() -> None:
    """Two agents of one owner, each with each of the clients."""
    for kind in (OpenIntentClient, AsyncOpenIntentClient):
        known = {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name.endswith("_memory")}
        assert known == METHODS, known
    with tempfile.TemporaryDirectory() as folder:
        home = str(Path(folder) / "home")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        run(home, "init", "--did", "did:key", "--key-file", str(Path(folder) / "key"))
        keys = {name: run(home, "agent", "add", name)["api_key"] for name in ("scout", "other")}
        keys["lead"] = run(home, "agent", "add", "lead", "--role", "coordinator")["api_key"]
        base = f"http://127.0.0.1:{port}"
        with served(home, port):
            for name, other in (("scout", "other"), ("other", "scout")):
                with (
                    OpenIntentClient(base, api_key=keys[name], agent_id=name) as mine,
                    OpenIntentClient(base, api_key=keys[other], agent_id=other) as theirs,
                ):
                    await drive(sync_calls(mine), sync_calls(theirs), name, "sync")
                async with (
                    AsyncOpenIntentClient(base, api_key=keys[name], agent_id=name) as mine,
                    AsyncOpenIntentClient(base, api_key=keys[other], agent_id=other) as theirs,
                ):
                    await drive(async_calls(mine), async_calls(theirs), name, "async")
            team = ("lead", "scout", "other")
            with contextlib.ExitStack() as open_:
                clients = [OpenIntentClient(base, api_key=keys[name], agent_id=name) for name in team]
                await coordinate(*(sync_calls(open_.enter_context(client)) for client in clients))
                assert "memory.search" in clients[0].discover()["capabilities"]
            async with contextlib.AsyncExitStack() as open_:
                clients = [AsyncOpenIntentClient(base, api_key=keys[name], agent_id=name) for name in team]
                await coordinate(*[async_calls(await open_.enter_async_context(client)) for client in clients])
            # An agent is who its key says.
            with OpenIntentClient(base, api_key=keys["scout"], agent_id="other") as liar:
                await refuses(OpenIntentError, 403, sync_calls(liar)("list_memory", "other"))
            with OpenIntentClient(base, api_key="oapk_none", agent_id="scout") as nobody:
                await refuses(OpenIntentError, 401, sync_calls(nobody)("list_memory", "scout"))
            with OpenIntentClient(base, api_key=keys["scout"], agent_id="scout") as mine:
                value = {**ODD, "text": MARK}
                kept, gone = [
                    mine.create_memory("scout", "n", key, value, memory_type="episodic", sensitivity="confidential")
                    for key in ("kept", "gone")
                ]
                mine.delete_memory(mine.update_memory(gone.id, 1, value={**value, "z": 1}).id)
                sealed(home)
        # What is there outlives the process, and what was deleted does not come back.
        with served(home, port), OpenIntentClient(base, api_key=keys["scout"], agent_id="scout") as mine:
            assert mine.list_memory("scout") == [kept]
            await refuses(NotFoundError, 404, sync_calls(mine)("get_memory", gone.id))
        sealed(home)
        given = run(home, "audit", "injected", "--agent", "scout")
        assert any(answer["tool"] == "openintent.show" for answer in given["answers"]), given
        run(home, "audit", "verify")
    print(
        "openintent, sync and async: agents write, read, list, change and delete entries, and see nothing of each other's; a coordinator follows a task"
    )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
