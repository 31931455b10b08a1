"""The agent's side against the real gateway, over TLS."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator

import httpx
import pytest
from gateway import Gateway

from oap_memory import (
    Agent,
    AsyncAgent,
    Conflict,
    GatewayError,
    InvalidInput,
    NotFound,
    NotPermitted,
    Session,
    Told,
    TooMany,
    Unauthenticated,
    Unavailable,
    Unreachable,
    UsageError,
    block,
)
from oap_memory.calls import LONGEST, PAUSES
from oap_memory.flow import Request, Response
from oap_memory.wire import AsyncWire, Wire

NOWHERE = "mem_01HQZZZZZZZZZZZZZZZZZZZZZZ"


@pytest.fixture(scope="module")
def agent(office: Gateway) -> Iterator[Agent]:
    with Agent(office.origin, office.agent("clerk"), ca_file=office.ca_file) as agent:
        yield agent


def test_everything_that_an_agent_does(agent: Agent, office: Gateway) -> None:
    owners = office.item("The rent is due on the first", "--label", "rent")
    learned = agent.learn(
        "The site goes live in June",
        topic="site",
        tags=["dates"],
        kind="observation",
        confidence=0.9,
        level="tool_verified",
        source={"type": "mail", "ref": "from Ann"},
        scope="private",
        sensitivity="confidential",
        ttl_days=30,
    )
    assert (learned.version, learned.level, learned.confidence) == (1, "tool_verified", 0.9)
    assert (learned.needs_verification, learned.scope) == (False, "private")
    found = agent.recall("when does the site go live?", topic="site", kinds=["observation"], min_confidence=0.5)
    assert found.matched == 1
    fact = found.facts[0]
    assert (fact.item_id, fact.commitment, fact.agent) == (learned.item_id, learned.commitment, "clerk")
    assert (fact.topic, fact.tags, fact.kind) == ("site", ("dates",), "observation")
    assert fact.source is not None
    assert (fact.source.type, fact.source.ref, fact.source.hash) == ("mail", "from Ann", None)
    assert fact.expires_at is not None
    assert fact.score is not None and fact.score_parts is not None
    parts = fact.score_parts
    added = parts.text + parts.topic + parts.recency + parts.confidence + parts.graph
    assert added == pytest.approx(fact.score)
    corrected = agent.correct(learned.item_id, "The site goes live in July", level="tool_verified")
    assert (corrected.version, corrected.confidence) == (2, 0.9)
    explained = agent.explain(learned.item_id)
    assert [step.event for step in explained.chain] == ["capture", "correct"]
    assert [(former.version, former.content) for former in explained.corrections] == [(1, "The site goes live in June")]
    assert explained.corrections[0].agent == "clerk"
    assert (explained.retracted_at, explained.more) == (None, False)
    then = agent.explain(learned.item_id, as_of=explained.chain[0].at)
    assert (then.fact.content, then.as_of) == ("The site goes live in June", explained.chain[0].at)
    assert (then.fact.version, then.fact.agent, then.corrections) == (1, "clerk", ())
    state = agent.status()
    assert (state.agent, state.permission, state.own) == ("clerk", "memory.write", 1)
    changed = agent.diff("2026-01-01T00:00:00Z", topic="site")
    assert [fact.content for fact in changed.learned] == ["The site goes live in July"]
    forgotten = agent.forget(learned.item_id)
    assert agent.explain(learned.item_id).retracted_at == forgotten.retracted_at
    assert agent.query(topic="site").facts == ()
    mine = [fact for fact in agent.query(agent="owner", tags=["rent"]).facts if fact.item_id == owners]
    assert (mine[0].agent, mine[0].level, mine[0].confidence) == ("owner", "user_stated", 1.0)


def test_the_same_with_asyncio(office: Gateway) -> None:
    key = office.agent("courier")

    async def talk() -> None:
        async with AsyncAgent(office.origin, key, ca_file=office.ca_file) as agent:
            learned = await agent.learn("Parcels are blue", topic="parcels")
            await agent.correct(learned.item_id, "Parcels are green")
            await asyncio.gather(*(agent.learn(f"Parcel {n} is here", topic="parcels") for n in range(3)))
            pages = [page async for page in agent.pages(topic="parcels", limit=3)]
            assert [len(page.facts) for page in pages] == [3, 1]
            assert (await agent.recall("green parcels")).facts[0].item_id == learned.item_id
            assert (await agent.explain(learned.item_id)).fact.version == 2
            await agent.forget(learned.item_id)
            changed = await agent.diff("2026-01-01T00:00:00Z", topic="parcels")
            assert changed.retracted == (learned.item_id,)
            assert (await agent.status()).own == 3
            assert len(await agent.tools()) == 10
            assert "You are courier" in (await agent.call("memory_status", {})).text

    asyncio.run(talk())


Wrong = Callable[[Agent], object]


@pytest.mark.parametrize(
    ("wrong", "error", "field"),
    [
        (lambda agent: agent.learn(""), InvalidInput, "content"),
        (lambda agent: agent.learn("x", confidence=2), InvalidInput, "confidence"),
        (lambda agent: agent.learn("x", level="user_stated"), InvalidInput, "level"),
        (lambda agent: agent.learn("x", kind="gossip"), InvalidInput, "kind"),
        (lambda agent: agent.learn("x", source={"type": ""}), InvalidInput, "source.type"),
        (lambda agent: agent.learn("x", source={"type": "web", "hash": "x"}), InvalidInput, "source.hash"),
        (lambda agent: agent.learn("x", source={"ref": "x"}), InvalidInput, "source.type"),
        (lambda agent: agent.call("memory_learn", {"content": "x", "topc": "y"}), InvalidInput, "topc"),
        (lambda agent: agent.learn("x", ttl_days=0), InvalidInput, "ttl_days"),
        (lambda agent: agent.learn("x", agent_did="did:key:z6Mk"), InvalidInput, "agent_did"),
        (lambda agent: agent.recall("x", limit=0), InvalidInput, "limit"),
        (lambda agent: agent.recall("x", kinds=["gossip"]), InvalidInput, "kinds[0]"),
        (lambda agent: agent.query(since="yesterday"), InvalidInput, "since"),
        (lambda agent: agent.diff("2026-01-02T00:00:00Z", until="2026-01-01T00:00:00Z"), InvalidInput, "until"),
        (lambda agent: agent.call("memory_recall", {}), InvalidInput, "query"),
        (lambda agent: agent.call("memory_erase", {}), InvalidInput, "tool"),
        (lambda agent: agent.explain("x"), InvalidInput, "item_id"),
        (lambda agent: agent.explain(NOWHERE), NotFound, None),
        (lambda agent: agent.learn("x", confidence=float("nan")), UsageError, None),
        (lambda agent: agent.call("memory_learn", {"content": b"x"}), UsageError, None),
        (lambda agent: agent.call("memory_status", ["x"]), UsageError, "arguments"),
        (lambda agent: agent.working.get("batch", "\ud800"), UsageError, "key"),
        (lambda agent: Session(agent, max_tokens=9).suppose("x", 0.5, tags="ab"), UsageError, "tags"),
    ],
)
def test_a_refusal_is_typed_and_names_the_field(agent: Agent, wrong: Wrong, error: type, field: str | None) -> None:
    with pytest.raises(error) as refused:
        wrong(agent)
    if field is not None:
        assert refused.value.field == field  # type: ignore[attr-defined]


def test_a_correction_says_where_it_comes_from(agent: Agent) -> None:
    learned = agent.learn("The logo is blue", source={"type": "mail", "ref": "from Ann"})
    agent.correct(learned.item_id, "The logo is green", source={"type": "web", "ref": "https://a.example/"})
    source = agent.explain(learned.item_id).fact.source
    assert source is not None
    assert (source.type, source.ref) == ("web", "https://a.example/")


def test_what_is_stale_is_told_as_stale(agent: Agent) -> None:
    agent.learn("The queue has five people", topic="queue", staleness="volatile", type="user_stated_preference")
    agent.learn("The queue is in the hall", topic="queue", staleness="weekly")
    hall, people = sorted(agent.query(topic="queue").facts, key=lambda fact: fact.stale)
    assert (people.staleness, people.stale, people.type) == ("volatile", True, "user_stated_preference")
    assert (hall.staleness, hall.stale) == ("weekly", False)
    assert (' stale="true">' in block(people), "stale" in block(hall)) == (True, False)
    # As the gateway's own text block has it.
    assert block(people) in agent.call("memory_query", {"topic": "queue"}).text


def test_who_may_what(agent: Agent, office: Gateway) -> None:
    learned = agent.learn("The safe is green", topic="safe")
    with pytest.raises(Conflict):
        agent.correct(learned.item_id, "The safe is red", version=7)
    key = office.agent("reader", "read")
    with Agent(office.origin, key, ca_file=office.ca_file) as reader:
        assert reader.recall("safe").matched == 1
        with pytest.raises(NotPermitted):
            reader.learn("x")
        office.run("agent", "remove", "reader")
        with pytest.raises(Unauthenticated):
            reader.status()
    agent.forget(learned.item_id)
    with pytest.raises(Conflict):
        agent.forget(learned.item_id)


def test_what_is_no_key_goes_nowhere() -> None:
    for key in ("", "hunter2", "oapk_" + "A" * 42, "oapk_" + "A" * 43 + "\n"):
        with pytest.raises(UsageError, match="api_key"):
            Agent("https://memory.example.org", key)
    with Agent("https://memory.example.org", "oapk_" + "A" * 43) as agent:
        assert "AAAA" not in repr(agent._caller)


def test_what_the_environment_does_not_have_is_named() -> None:
    key = "oapk_" + "A" * 43
    for gateway, api_key, field in ((None, key, "gateway"), ("https://memory.example.org", None, "api_key")):
        with pytest.raises(UsageError) as refused:
            Agent(gateway, api_key)  # type: ignore[arg-type]
        assert refused.value.field == field
    with pytest.raises(UsageError) as refused:
        Agent("https://memory.example.org", key, ca_file="/nowhere")
    assert refused.value.field == "ca_file"


def test_what_is_closed_says_so() -> None:
    gateway, key = "https://memory.example.org", "oapk_" + "A" * 43

    async def late() -> None:
        agent = AsyncAgent(gateway, key)
        await agent.close()
        await agent.status()

    agent = Agent(gateway, key)
    agent.close()
    with pytest.raises(UsageError, match="closed"):
        agent.status()
    with pytest.raises(UsageError, match="closed"):
        asyncio.run(late())


def test_a_key_goes_over_tls_to_who_is_trusted(office: Gateway) -> None:
    key = office.agent("stranger")
    with Agent(office.origin, key) as agent, pytest.raises(Unreachable, match=r"not trusted.*`ca_file`"):
        agent.learn("x")
    with Agent("http://memory.example.org", key) as agent, pytest.raises(Unreachable):
        agent.learn("x")
    with Agent("oap://memory.example.org", key) as agent, pytest.raises(Unreachable, match="https"):
        agent.learn("x")


class Broken:
    """A wire that says what it is told to, and waits for nothing."""

    def __init__(self, *says: int | Response | Unreachable) -> None:
        self.says = list(says)
        self.waited: list[float] = []

    def send(self, request: Request) -> Response:
        self.waited.append(request.after)
        said = self.says.pop(0)
        if isinstance(said, Unreachable):
            raise said
        if isinstance(said, Response):
            return said
        if said == 200:
            told = Told({"facts": [], "matched": 0}, "Nothing is remembered of that.")
            return Response(200, json.dumps({"structured": told.structured, "text": told.text}).encode())
        return Response(said, json.dumps({"error": "maintenance", "message": "busy; try again later"}).encode())


def broken(agent: Agent, *says: int | Response | Unreachable) -> Broken:
    wire = Broken(*says)
    agent._wire.send = wire.send  # type: ignore[method-assign]
    return wire


@pytest.fixture
def torn() -> Iterator[Agent]:
    with Agent("https://memory.example.org", "oapk_" + "A" * 43) as agent:
        yield agent


LOST = Unreachable("lost", passing=True)
UNSENT = Unreachable("refused", passing=True, sent=False)
NEVER = Unreachable("the address must be https")


def test_what_changes_nothing_is_asked_again(torn: Agent) -> None:
    wire = broken(torn, LOST, 503, 504, 200)
    assert torn.recall("tea").matched == 0
    assert wire.waited == [0.0, *PAUSES]
    wire = broken(torn, 503, 503, 503, 503)
    with pytest.raises(GatewayError, match="busy"):
        torn.recall("tea")
    assert len(wire.waited) == 1 + len(PAUSES)
    for says in (NEVER, 400, 429, 500):
        wire = broken(torn, says)
        with pytest.raises((GatewayError, Unreachable)):
            torn.recall("tea")


def limited(seconds: int | None) -> Response:
    said = {"error": "rate_limited", "message": f"too many requests; try again in {seconds} s"}
    return Response(429, json.dumps(said).encode(), seconds)


def test_a_gateway_that_says_when_is_waited_for(torn: Agent) -> None:
    wire = broken(torn, limited(2), limited(0), 200)
    assert torn.recall("tea").matched == 0
    assert wire.waited == [0.0, 2, PAUSES[1]]
    wire = broken(torn, Response(503, b"", LONGEST), 200)
    assert torn.recall("tea").matched == 0
    assert wire.waited == [0.0, LONGEST]
    for says in (limited(LONGEST + 1), limited(None), Response(503, b"", LONGEST + 1)):
        wire = broken(torn, says)
        with pytest.raises((TooMany, Unavailable)) as refused:
            torn.recall("tea")
        assert refused.value.retry_after == says.retry_after
    wire = broken(torn, limited(2))
    with pytest.raises(TooMany) as refused:
        torn.learn("tea")
    assert (refused.value.retry_after, refused.value.code) == (2, "rate_limited")
    assert len(wire.waited) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("59", 59), ("0", 0), ("", None), ("-1", None), ("1.5", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)],
)
def test_retry_after_is_read_from_the_header(header: str, seconds: int | None) -> None:
    def answers(_: httpx.Request) -> httpx.Response:
        return httpx.Response(429, headers={"Retry-After": header}, stream=httpx.ByteStream(b""))

    async def ask() -> int | None:
        wire = AsyncWire(local=True)
        wire._client = httpx.AsyncClient(transport=httpx.MockTransport(answers))
        return (await wire.send(Request("GET", "http://127.0.0.1:1/"))).retry_after

    wire = Wire(local=True)
    wire._client = httpx.Client(transport=httpx.MockTransport(answers))
    assert wire.send(Request("GET", "http://127.0.0.1:1/")).retry_after == seconds
    assert asyncio.run(ask()) == seconds


def test_what_writes_is_asked_again_where_it_was_not_sent(torn: Agent) -> None:
    wire = broken(torn, UNSENT, UNSENT, LOST)
    with pytest.raises(Unreachable, match="lost"):
        torn.learn("tea")
    assert wire.waited == [0.0, *PAUSES[:2]]
    for tool in ("memory_learn", "memory.recall", "memory_correct", "memory_forget"):
        wire = broken(torn, 503)
        with pytest.raises(GatewayError):
            torn.call(tool, {})
        assert len(wire.waited) == 1


def test_what_is_no_answer_is_not_believed(torn: Agent) -> None:
    for body in (b"", b"[]", b"{}", b'{"structured": {"facts": 1, "matched": 0}, "text": ""}'):
        torn._wire.send = lambda _, body=body: Response(200, body)  # type: ignore[misc, method-assign]
        with pytest.raises(Unreachable):
            torn.recall("tea")
