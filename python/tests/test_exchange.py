"""The client against the real gateway, over TLS."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway

from oap_memory import (
    AsyncClient,
    Client,
    GatewayError,
    InvalidInput,
    NotPermitted,
    PrivateKey,
    Refused,
    TooMany,
    Unreachable,
    UsageError,
    canonical,
    verify,
)
from oap_memory.canonical import hash_of
from oap_memory.encoding import b64
from oap_memory.flow import Request, Response


def client(house: Gateway, grant: Any, key: PrivateKey, **more: Any) -> Client:
    return Client(grant, key, ca_file=house.ca_file, allow_local_dids=True, **more)


def test_from_a_grant_to_everything_that_it_shows(house: Gateway) -> None:
    key = PrivateKey.new()
    grant = house.grant(key.did, "--allow-export")
    with client(house, grant, key) as asking:
        answer = asking.query("tuesday meetings")
        assert answer.texts == ["Meetings on Tuesday mornings, write to [email]"]
        assert answer.report.names() == {"unchecked.agent", "unchecked.projection", "unchecked.state"}
        pages = list(asking.pages(max_results=1))
        assert len(pages) == 3
        assert len({page.items[0]["item_id"] for page in pages}) == 3
        assert asking.query("tea", kinds=["preference"]).items == []
        bundle = asking.export()
        assert len(bundle.items) == 3
        assert bundle.report.facts["projected"]["grant_id"] == grant["grant_id"]
        joint = asking.ack(answer.wire["receipt"])
        assert [signature["by"].partition("#")[0] for signature in joint["signatures"]] == [house.did, key.did]
        assert verify(joint, documents=[house.document]).names() == set()
        log = asking.audit(limit=3)
        assert [receipt["action_id"] for receipt in log] == ["memory.export", "memory.query", "memory.query"]
        assert asking.state() == "active"
        assert not asking.revoked()
        assert asking.manifest()["principal"] == house.did
        house.run("grant", "revoke", grant["grant_id"])
        assert asking.revoked()
        assert asking.state() == "revoked"
        with pytest.raises(GatewayError) as refused:
            asking.query("tuesday")
        assert (refused.value.status, refused.value.code) == (403, "policy_block")


def test_the_same_with_asyncio(house: Gateway) -> None:
    key = PrivateKey.new()
    grant = house.grant(key.did, "--allow-export")

    async def ask() -> None:
        async with AsyncClient(grant, key, ca_file=house.ca_file, allow_local_dids=True) as asking:
            assert (await asking.query("tea")).texts == ["Tea at nine"]
            answers = await asyncio.gather(*(asking.query(word) for word in ("tea", "tuesday", "cellar")))
            assert [len(answer.items) for answer in answers] == [1, 1, 1]
            assert [len(page.items) async for page in asking.pages(max_results=2)] == [2, 1]
            assert len((await asking.export()).items) == 3
            await asking.ack(answers[0].wire["receipt"])
            assert len(await asking.audit()) >= 5
            assert await asking.state() == "active"
            assert not await asking.revoked()
            assert (await asking.manifest())["principal"] == house.did

    asyncio.run(ask())


def test_a_grant_that_was_passed_on(house: Gateway) -> None:
    mine, theirs = PrivateKey.new(), PrivateKey.new()
    parent = house.grant(mine.did, "--delegable", "1", "--purpose-code", "design.web")
    child = {name: member for name, member in parent.items() if name not in ("status", "delegable", "signature")}
    child |= {"grant_id": "mgr_01KQHPJ4ARNZP88CYM9QF3JS35", "grantee": theirs.did, "parent": hash_of(parent)}
    child |= {"max_items": 2, "trust_level": 1, "purpose": "A subcontractor's part"}
    header = b64(canonical({"alg": "EdDSA", "kid": mine.kid}))
    child["signature"] = f"{header}..{mine.sign(f'{header}.{b64(canonical(child))}'.encode())}"
    with client(house, child, theirs, ancestors=[parent]) as asking:
        answer = asking.query(purpose="design.web")
        assert len(answer.items) == 2
        assert answer.texts == []
        assert answer.wire["receipt"]["policy_decisions"][0]["delegation"] == [hash_of(parent)]
    with client(house, child, theirs) as asking, pytest.raises(Refused, match=r"^grant\.no_parent"):
        asking.query()


Wrong = Callable[[Client], object]


@pytest.mark.parametrize(
    ("wrong", "error", "field"),
    [
        (lambda asking: asking.query(5), UsageError, "query"),
        (lambda asking: asking.query("x" * 4097), UsageError, "query"),
        (lambda asking: asking.query("\ud800"), UsageError, None),
        (lambda asking: asking.query(max_results="5"), UsageError, "max_results"),
        (lambda asking: asking.query(kinds=["gossip"]), UsageError, "kinds"),
        (lambda asking: asking.query(kinds="fact"), UsageError, "kinds"),
        (lambda asking: asking.query(labels_any="website"), UsageError, "labels_any"),
        (lambda asking: asking.query(min_confidence=float("nan")), UsageError, "min_confidence"),
        (lambda asking: asking.query(cursor="x"), InvalidInput, "cursor"),
        (lambda asking: next(asking.pages(cursor="x")), InvalidInput, "cursor"),
        (lambda asking: asking.query(include_embeddings=True), NotPermitted, "include_embeddings"),
        (lambda asking: asking.audit(since="yesterday"), InvalidInput, "since"),
        (lambda asking: asking.audit(limit=0), InvalidInput, "limit"),
        (lambda asking: asking.export(), UsageError, "grant"),
        (lambda asking: asking.ack({}), Refused, "/receipt_id"),
    ],
)
def test_what_is_wrong_is_typed_and_named(house: Gateway, wrong: Wrong, error: type, field: str | None) -> None:
    key = PrivateKey.new()
    with client(house, house.grant(key.did), key) as asking, pytest.raises(error) as refused:
        wrong(asking)
    assert refused.value.field == field  # type: ignore[attr-defined]


def test_what_a_client_is_made_of_is_checked() -> None:
    with pytest.raises(UsageError) as refused:
        Client({}, "my.key")  # type: ignore[arg-type]
    assert refused.value.field == "key"
    with pytest.raises(UsageError) as refused:
        Client({}, PrivateKey.new(), documents={"id": "did:web:a.example"})
    assert refused.value.field == "documents"


def test_pages_begin_where_they_are_told_to(house: Gateway) -> None:
    key = PrivateKey.new()
    with client(house, house.grant(key.did), key) as asking:
        first = asking.query(max_results=1)
        rest = list(asking.pages(max_results=1, cursor=first.next_cursor))
        assert len({page.items[0]["item_id"] for page in [first, *rest]}) == 3


def test_a_gateway_that_is_asked_too_often_says_until_when(house: Gateway) -> None:
    key = PrivateKey.new()
    with client(house, house.grant(key.did), key) as asking:
        send, asked = asking._wire.send, list[str]()

        def full(request: Request) -> Response:
            if not request.url.endswith("/query"):
                return send(request)
            asked.append(request.url)
            return Response(429, b'{"error": "rate_limited", "message": "too many requests; try again in 9 s"}', 9)

        asking._wire.send = full  # type: ignore[method-assign]
        with pytest.raises(TooMany) as refused:
            asking.query("tea")
        assert (refused.value.retry_after, len(asked)) == (9, 1)


def test_the_gateway_says_until_when(house: Gateway) -> None:
    key = PrivateKey.new()
    with client(house, house.grant(key.did), key) as asking, pytest.raises(TooMany) as refused:
        # Sixty questions of the log are answered in a minute; the minute may be another one meanwhile.
        for _ in range(122):
            asking.audit(limit=1)
    assert (refused.value.code, refused.value.status) == ("rate_limited", 429)
    assert refused.value.retry_after is not None
    assert 1 <= refused.value.retry_after <= 60


def test_a_bearer_grant(house: Gateway) -> None:
    key = PrivateKey.new()
    with client(house, house.grant(key.did, "--bearer"), key) as asking:
        assert asking.query("tea").texts == ["Tea at nine"]


def test_keys_that_are_rotated_meanwhile(house: Gateway, tmp_path: Path) -> None:
    key = PrivateKey.new()
    moving = Gateway(tmp_path)
    try:
        moving.item("Tea at nine")
        with client(moving, moving.grant(key.did), key) as asking:
            first = asking.query("tea")
            moving.run("keys", "rotate")
            # The token ended with the key that signed it, and the answer is signed by one that is new.
            second = asking.query("tea")
            kids = [answer.wire["signature"]["kid"].partition("#")[2] for answer in (first, second)]
            assert kids == ["key-1", "key-2"]
    finally:
        moving.stop()


def test_a_clock_that_is_wrong_is_not_believed(house: Gateway) -> None:
    key = PrivateKey.new()
    with client(house, house.grant(key.did), key) as asking:
        real = asking._grantee.now
        asking.query("tea")
        asking._grantee.now = lambda: real() + 301 * 10**9
        with pytest.raises((Refused, GatewayError)):
            asking.query("tea")


Change = Callable[[dict[str, Any]], None]


def said_otherwise(answer: dict[str, Any]) -> None:
    answer["items"][0]["content"]["text"] = "Meetings on Mondays"


def one_left_out(answer: dict[str, Any]) -> None:
    answer["items"].pop()


def cursor_added(answer: dict[str, Any]) -> None:
    answer["next_cursor"] = "x"


def level_raised(answer: dict[str, Any]) -> None:
    answer["projection_applied"]["trust_level"] = 4


def receipt_stripped(answer: dict[str, Any]) -> None:
    answer["receipt"]["signatures"] = []


@pytest.mark.parametrize("change", [said_otherwise, one_left_out, cursor_added, level_raised, receipt_stripped])
def test_a_changed_answer_is_refused(house: Gateway, change: Change) -> None:
    key = PrivateKey.new()
    with client(house, house.grant(key.did), key) as asking:
        send = asking._wire.send

        def changed(request: Request) -> Response:
            response = send(request)
            if not request.url.endswith("/query"):
                return response
            answer = json.loads(response.body)
            change(answer)
            return Response(200, json.dumps(answer).encode())

        asking._wire.send = changed  # type: ignore[method-assign]
        with pytest.raises(Refused):
            asking.query("tuesday")


def test_an_answer_to_another_query_is_refused(house: Gateway) -> None:
    key = PrivateKey.new()
    with client(house, house.grant(key.did), key) as asking:
        send, kept = asking._wire.send, list[Response]()

        def again(request: Request) -> Response:
            if request.url.endswith("/query"):
                kept.append(send(request))
                return kept[0]
            return send(request)

        asking._wire.send = again  # type: ignore[method-assign]
        asking.query("tuesday")
        with pytest.raises(Refused, match=r"^answer\.input_hash"):
            asking.query("tuesday")


def test_a_cut_bundle_is_refused(house: Gateway) -> None:
    key = PrivateKey.new()
    with client(house, house.grant(key.did, "--allow-export"), key) as asking:
        send = asking._wire.send

        def cut(request: Request) -> Response:
            response = send(request)
            body = response.body
            return Response(200, body[: body.rindex(b"\n", 0, -1) + 1]) if request.url.endswith("/export") else response

        asking._wire.send = cut  # type: ignore[method-assign]
        with pytest.raises(Refused, match=r"^bundle\.cut"):
            asking.export()


def test_private_addresses_and_unknown_authorities_are_not_reached(house: Gateway) -> None:
    key = PrivateKey.new()
    grant = house.grant(key.did)
    with Client(grant, key, ca_file=house.ca_file) as asking, pytest.raises(Refused):
        asking.query()
    known = [house.document]
    with (
        Client(grant, key, documents=known, ca_file=house.ca_file) as asking,
        pytest.raises(Unreachable, match="public"),
    ):
        asking.query()
    with Client(grant, key, documents=known, allow_local_dids=True) as asking, pytest.raises(Unreachable):
        asking.query()


def test_a_grant_to_another_is_not_used(house: Gateway) -> None:
    grant = house.grant(PrivateKey.new().did)
    with client(house, grant, PrivateKey.new()) as asking, pytest.raises(UsageError, match="another DID"):
        asking.query()


def module(*arguments: str, status: int = 0) -> str:
    done = subprocess.run([sys.executable, "-m", "oap_memory", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, (arguments, done.stdout, done.stderr)
    return done.stdout


def test_the_command_line_and_what_it_keeps_holds_for_the_binary(house: Gateway, tmp_path: Path) -> None:
    key, grant, answer, bundle = (str(tmp_path / name) for name in ("my.key", "g.json", "answer.json", "slice.bundle"))
    did = module("key", "--out", key).strip()
    module("key", "--out", key, status=1)
    Path(grant).write_text(json.dumps(house.grant(did, "--allow-export")))
    document = tmp_path / "did.json"
    document.write_text(json.dumps(house.document))
    there = ("--trust-ca", house.ca_file, "--allow-local-dids")
    said = module("query", "--grant", grant, "--key", key, *there, "tuesday", "--save", answer)
    assert "Meetings on Tuesday mornings, write to [email]" in said
    module("query", "--grant", grant, "--key", key, *there, "--export", bundle)
    known = ("--did-document", str(document))
    module("verify", answer, bundle, grant, *known)
    module("verify", answer, "--grant", grant, *known)
    house.run("verify", answer, "--grant", grant, *known)
    house.run("verify", bundle, *known)
    # The binary's key file and answer, here.
    other = str(tmp_path / "other.key")
    did = house.run("key", "new", "--out", other).split()[-1]
    Path(grant).write_text(json.dumps(house.grant(did)))
    house.run("query", "--grant", grant, "--key", other, *there, "tea", "--save", answer)
    assert json.loads(module("verify", answer, "--grant", grant, *known, "--json"))["verified"] is True
    module("query", "--grant", grant, "--key", other, *there, "tea")
    # Statuses: nothing found out, wrong usage, refused by a gateway, does not hold.
    assert "no DID document" in module("verify", answer, status=1)
    module("verify", status=2)
    Path(answer).write_text(Path(answer).read_text().replace("Tea at nine", "Tea at ten"))
    assert "does not hold" in module("verify", answer, *known, status=4)
    house.run("grant", "revoke", json.loads(Path(grant).read_text())["grant_id"])
    module("query", "--grant", grant, "--key", other, *there, "tea", status=3)


def test_the_owners_bundle_with_all_receipts(house: Gateway, tmp_path: Path) -> None:
    whole = tmp_path / "whole.bundle"
    house.run("export", str(whole), "--receipts", "--grants")
    report = verify(whole.read_bytes(), documents=[house.document])
    assert report.facts["items"] == 3
    assert report.facts["receipts"] > 10
    assert "unchecked.action" not in report.names()
