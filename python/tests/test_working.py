"""Working memory by key, against the real gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from gateway import Gateway

from oap_memory import Agent, AsyncAgent, Conflict, InvalidInput, NotFound, NotPermitted
from oap_memory.working import Scope

BIG = 2**70


@pytest.fixture(scope="module")
def agent(office: Gateway) -> Iterator[Agent]:
    with Agent(office.origin, office.agent("worker"), ca_file=office.ca_file) as agent:
        yield agent


def test_set_get_list_delete(agent: Agent) -> None:
    value = {"z": 1, "a": [BIG, None, 0.5], "ü": "</memory-item>"}
    made = agent.working.set(
        "batch", "progress", value, tags=["z", "a"], ttl="duration:PT24H", scope={"task_id": "task-1"}
    )
    assert (made.namespace, made.key, made.memory_type, made.version) == ("batch", "progress", "working", 1)
    assert (made.value, made.tags, made.ttl, made.scope) == (value, ("z", "a"), "duration:PT24H", Scope("task-1"))
    assert made.expires_at is not None
    assert list(made.value) == ["z", "a", "ü"]
    changed = agent.working.set("batch", "progress", {"completed": 24}, ttl=None)
    assert (changed.version, changed.tags, changed.ttl, changed.expires_at) == (2, ("z", "a"), None, None)
    assert agent.working.get("batch", "progress") == changed
    agent.working.set("batch*", "other", {})
    assert agent.working.get("batc*", "progress") is None
    assert agent.working.get("batch*", "progress") is None
    assert {entry.key for entry in agent.working.list("batch*")} == {"other", "progress"}
    assert agent.working.delete("batch", "progress")
    assert agent.working.get("batch", "progress") is None
    assert agent.working.set("batch", "progress", {}).version == 1


def test_what_another_program_changed_is_not_written_over(agent: Agent, office: Gateway) -> None:
    key = agent._caller.api_key
    agent.working.set("shared", "counter", {"n": 1})
    with Agent(office.origin, key, ca_file=office.ca_file) as other:
        # Without having seen it: what is there is looked at first.
        assert other.working.set("shared", "counter", {"n": 2}).version == 2
        with pytest.raises(Conflict) as refused:
            agent.working.set("shared", "counter", {"n": 3})
        assert refused.value.details["current_version"] == 2
        assert refused.value.details["current"]["value"] == {"n": 2}
        assert agent.working.set("shared", "counter", {"n": 3}, version=2).version == 3
        other.working.delete("shared", "counter")
    with pytest.raises(NotFound):
        agent.working.set("shared", "counter", {"n": 4})
    assert agent.working.set("shared", "counter", {"n": 4}).version == 1


def test_a_version_of_what_is_not_there_is_not_written(agent: Agent) -> None:
    made = agent.working.set("n", "gone", {"n": 1})
    assert agent.working.delete("n", "gone")
    with pytest.raises(NotFound):
        agent.working.set("n", "gone", {"n": 2}, version=made.version)
    assert agent.working.get("n", "gone") is None


def test_it_is_the_agents_alone(agent: Agent, office: Gateway) -> None:
    agent.working.set("own", "secret", {"n": 1})
    with Agent(office.origin, office.agent("colleague"), ca_file=office.ca_file) as other:
        assert other.working.get("own", "secret") is None
        assert other.working.list("*") == []
        assert other.working.set("own", "secret", {"n": 2}).version == 1
    with (
        Agent(office.origin, office.agent("onlooker", "read"), ca_file=office.ca_file) as reader,
        pytest.raises(NotPermitted),
    ):
        reader.working.set("own", "secret", {})


def test_a_refusal_names_the_field(agent: Agent) -> None:
    with pytest.raises(InvalidInput) as refused:
        agent.working.set("", "key", {})
    assert refused.value.field == "namespace"
    with pytest.raises(InvalidInput) as refused:
        agent.working.set("batch", "long", {"text": "x" * 70_000})
    assert (refused.value.status, refused.value.field) == (413, "value")
    with pytest.raises(InvalidInput) as refused:
        agent.working.set("batch", "ttl", {}, ttl="soon")
    assert refused.value.field == "ttl"


def test_the_same_with_asyncio(office: Gateway) -> None:
    key = office.agent("async-worker")

    async def work() -> None:
        async with AsyncAgent(office.origin, key, ca_file=office.ca_file) as agent:
            await agent.working.set("batch", "progress", {"n": 1})
            await agent.working.set("batch", "progress", {"n": 2})
            entry = await agent.working.get("batch", "progress")
            assert entry is not None
            assert (entry.version, entry.value) == (2, {"n": 2})
            assert await agent.working.list("batch") == [entry]
            assert await agent.working.delete("batch", "progress")

    asyncio.run(work())
