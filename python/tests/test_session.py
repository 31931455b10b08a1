"""A conversation with memory, against the real gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from gateway import Gateway

from oap_memory import Agent, AsyncAgent, AsyncSession, InvalidInput, Session, Window


@pytest.fixture(scope="module")
def agent(office: Gateway) -> Iterator[Agent]:
    with Agent(office.origin, office.agent("talker"), ca_file=office.ca_file) as agent:
        yield agent


def test_memory_is_there_at_the_start_and_conclusions_at_the_end(agent: Agent) -> None:
    agent.learn("The kitchen is painted yellow", topic="kitchen")
    with Session(agent, "what colour is the kitchen?", max_tokens=400) as session:
        assert session.facts[0].content == "The kitchen is painted yellow"
        assert len({fact.item_id for fact in session.facts}) == len(session.facts)
        assert session.context.tokens <= 400
        assert "<memory-item " in session.context.text
        session.conclude("The kitchen needs two coats", topic="kitchen", level="tool_verified")
        assert session.save()[0].level == "tool_verified"
        session.suppose("The kitchen dries in a day", 0.5, topic="kitchen", tags=["paint"])
        session.suppose("The kitchen is haunted", 0.29, topic="kitchen")
    assert [learned.confidence for learned in session.written] == [0.9, 0.5]
    guess, conclusion, _ = agent.query(topic="kitchen").facts
    assert (guess.tags, guess.needs_verification) == (("hypothesis", "paint"), True)
    assert conclusion.content == "The kitchen needs two coats"
    with Session(agent, max_tokens=400) as later:
        assert later.facts[0].content == "The kitchen dries in a day"
    assert later.written == []


def test_a_session_that_fails_writes_what_was_saved_alone(agent: Agent) -> None:
    with pytest.raises(RuntimeError), Session(agent, max_tokens=100) as session:
        session.conclude("The roof is sound", topic="roof")
        session.save()
        session.conclude("The roof leaks", topic="roof")
        raise RuntimeError
    assert [fact.content for fact in agent.query(topic="roof").facts] == ["The roof is sound"]


def test_what_a_refusal_stops_is_kept(agent: Agent) -> None:
    with pytest.raises(InvalidInput), Session(agent, max_tokens=100) as session:
        session.conclude("The cellar is dry", topic="cellar")
        session.conclude("")
        session.conclude("The cellar is dark", topic="cellar")
    assert [content for content, _ in session.pending] == ["", "The cellar is dark"]
    assert agent.query(topic="cellar").matched == 1


def test_the_summary_of_the_window_is_kept(agent: Agent) -> None:
    window = Window(24)
    with Session(agent, max_tokens=100, window=window):
        for turn in ("The gate is locked. Ask Ann for the key.", "Ann has it. She comes on Monday at nine."):
            window.add("user", turn)
    fact = agent.query(kinds=["summary"]).facts[0]
    assert (fact.content, fact.level, fact.tags) == ("user: The gate is locked.", "recalled", ("session",))


def test_the_same_with_asyncio(office: Gateway) -> None:
    key = office.agent("caller")

    async def talk() -> None:
        async with AsyncAgent(office.origin, key, ca_file=office.ca_file) as agent:
            window = Window(20)
            async with AsyncSession(agent, "the attic", max_tokens=300, window=window) as session:
                session.conclude("The attic is full", topic="attic", scope="private")
                assert len(await session.save()) == 1
                session.suppose("The attic has mice", 0.6, topic="attic")
                window.add("user", "Look at the attic. Take a lamp with you.")
                window.add("user", "It is full of boxes. They are all old.")
            assert len(session.written) == 3
            async with AsyncSession(agent, "the attic", max_tokens=300) as later:
                assert {fact.content for fact in later.facts} >= {"The attic is full", "The attic has mice"}

    asyncio.run(talk())
