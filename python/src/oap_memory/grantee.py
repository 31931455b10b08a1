"""A grantee's steps: from a grant to its gateway, a token, answers, bundles, receipts (protocol sections 2, 5.1, 6).

Every step is a flow (see `flow`); `client` drives them. What comes back is verified before it is returned.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

from . import form
from .answers import verify_answer
from .bundles import verify_bundle
from .canonical import Json, canonical, hash_of, parse
from .documents import Documents
from .errors import Refused, Unreachable, UsageError
from .flow import MAX_BUNDLE, WHOLE_BUNDLE, Flow, Request, Response, accepted, read_json
from .form import COUNT, GRANT_ID, RECEIPT_ID, TEXT, hold, obj, one_of
from .grants import STATUS, check_delegation, granter_of, term
from .keyfile import PrivateKey
from .manifests import check_manifest
from .receipts import check_receipt, content
from .report import Reader, Report
from .resolving import MAX_DOCUMENT, with_documents
from .status import read_status_list
from .times import SECOND, SKEW, clock, instant
from .tokens import countersignature, dpop_proof, grant_proof
from .verifying import split_lines

MAX_RECEIPTS = 1000
"""Receipts of a question of the log."""
_SPARE = 30
"""Seconds before its end at which a token is not used any more."""
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TOKEN = obj(
    {"memory_grant_jwt": TEXT, "expires_in": COUNT, "token_type": one_of("DPoP", "Bearer"), "receipt_id": RECEIPT_ID},
    {"status": STATUS},
    closed=False,
)
_STATE = obj({"grant_id": GRANT_ID, "state": one_of("draft", "active", "expired", "revoked")}, closed=False)
_JOINT = obj({"receipt": form.OPEN}, closed=False)
_LOG = obj({"receipts": form.array(form.OPEN, 0, MAX_RECEIPTS)}, closed=False)


@dataclass(frozen=True)
class Answer:
    """An answer that was verified."""

    wire: dict[str, Any]
    """As it came: keep it, it is the proof."""
    report: Report
    """What holds, and what is not covered."""

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items, best first."""
        shown: list[dict[str, Any]] = self.wire["items"]
        return shown

    @property
    def texts(self) -> list[str]:
        """The texts of the items that show one."""
        return [item["content"]["text"] for item in self.items if "text" in item.get("content", {})]

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins, or `None` at the end."""
        cursor: str | None = self.wire["next_cursor"]
        return cursor


@dataclass(frozen=True)
class Bundle:
    """A projected bundle that was verified."""

    data: bytes
    report: Report

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items that it holds."""
        return [
            line["item"] for raw in split_lines(self.data) if isinstance(line := parse(raw), dict) and "item" in line
        ]


@dataclass
class _Token:
    jwt: str
    kind: str
    until: int


@dataclass
class Grantee:
    """What a grantee knows, and its steps. `documents` are used before published ones."""

    grant: Json
    key: PrivateKey
    ancestors: Sequence[Json] = ()
    documents: Documents = field(default_factory=Documents)
    gateway: str | None = None
    """The origin of the gateway, where neither the grant nor its granter's document lead there."""
    local: bool = False
    """Whether private addresses and plain http on loopback are allowed, for development."""
    now: Callable[[], int] = clock

    _held: dict[str, Any] | None = None
    _manifest: dict[str, Any] | None = None
    _token: _Token | None = None

    def _reader(self) -> Reader:
        return Reader(self.documents, self.now())

    def _checked(self, judge: Callable[[], Report]) -> Flow[Report]:
        return (yield from with_documents(self.documents, judge, local=self.local))

    def held(self) -> Flow[dict[str, Any]]:
        """The grant, verified, and made out to the key."""
        if self._held is None:
            grant, _ = yield from with_documents(
                self.documents, lambda: check_delegation(self.grant, self.ancestors, self._reader()), local=self.local
            )
            if grant["grantee"] != self.key.did:
                raise UsageError("the grant is made out to another DID than the key's", "key")
            self._held = grant
        return self._held

    def _address(self, grant: dict[str, Any]) -> str:
        """Where the memory manifest is, as signed documents say."""
        if self.gateway is not None:
            return self.gateway.rstrip("/") + "/.well-known/oap-memory.json"
        known = self.documents.of(granter_of(grant))
        if known is not None and (named := known.services.get("OAPMemoryExchange")) is not None:
            return named
        first = self.ancestors[0] if self.ancestors else grant
        status = first.get("status") if isinstance(first, dict) else None
        if status is None:
            raise UsageError("the grant does not say where its gateway is: name it", "gateway")
        return origin(status["status_list"]["uri"]) + "/.well-known/oap-memory.json"

    def discover(self) -> Flow[dict[str, Any]]:
        """The granter's memory manifest, signed by the granter."""
        if self._manifest is None:
            grant = yield from self.held()
            response = yield Request("GET", self._address(grant), limit=MAX_DOCUMENT)
            value, report = read_json(response), Report("memory manifest")
            manifest = check_manifest(value, self._reader(), report)
            if manifest["principal"] != granter_of(grant):
                raise Refused("manifest.principal", "/principal", "must be the granter")
            self._manifest = manifest
        return self._manifest

    def _endpoint(self, name: str) -> Flow[str]:
        manifest = yield from self.discover()
        return str(manifest["endpoints"][name])

    def _beside(self, path: str) -> Flow[str]:
        """An address that the manifest does not name: below the origin of its query endpoint."""
        return origin((yield from self._endpoint("query"))) + path

    def exchange(self) -> Flow[str]:
        """Exchanges the grant for a token; one that is in force is used again."""
        if self._token is None or self._token.until <= self.now():
            grant = yield from self.held()
            url = yield from self._endpoint("grant")
            at = self.now()
            body: dict[str, Any] = {"grant": grant, "proof": grant_proof(self.key, url, hash_of(grant), at)}
            if self.ancestors:
                body["chain"] = list(self.ancestors)
            response = yield _post(url, body)
            answer = hold(_TOKEN, read_json(response), "token.malformed")
            life = max(answer["expires_in"] - _SPARE, 1)
            self._token = _Token(answer["memory_grant_jwt"], answer["token_type"], at + life * SECOND)
        return self._token.jwt

    def _asked(self, request: Request) -> Flow[Response]:
        """Sends a request with the token; where a token in use has ended early, once more with a new one."""
        used = self._token
        response = yield from self._authorized(request)
        if response.status == 401 and self._token is used and used is not None:
            self._token = None
            response = yield from self._authorized(request)
        return response

    def authorization(self, method: str, url: str) -> Flow[dict[str, str]]:
        """The headers of one request: the token, and a fresh proof where the token is bound to the key."""
        jwt = yield from self.exchange()
        if self._token is None or self._token.kind == "DPoP":
            proof = dpop_proof(self.key, method, url, jwt, self.now())
            return {"Authorization": "DPoP " + jwt, "DPoP": proof}
        return {"Authorization": "Bearer " + jwt}

    def _authorized(self, request: Request) -> Flow[Response]:
        headers = yield from self.authorization(request.method, request.url)
        return (yield replace(request, headers={**request.headers, **headers}))

    def query(self, asked: dict[str, Any]) -> Flow[Answer]:
        """One page of an answer, verified under the grant, to this very query."""
        grant = yield from self.held()
        url = yield from self._endpoint("query")
        request = {name: value for name, value in asked.items() if value is not None}
        request["request_id"] = "".join(secrets.choice(_CROCKFORD) for _ in range(26))
        response = yield from self._asked(_post(url, request))
        answer = read_json(response)
        report = yield from self._checked(lambda: verify_answer(answer, self._reader(), grant, self.ancestors))
        wire: dict[str, Any] = answer if isinstance(answer, dict) else {}
        as_read = {"query": "", "include_embeddings": False, "integrity": "full", **request}
        if wire["receipt"]["input_hash"] != hash_of(as_read) or wire["request_id"] != request["request_id"]:
            raise Refused("answer.input_hash", "/receipt/input_hash", "must be the hash of the query that was sent")
        if (instant(wire["receipt"]["timestamp"]) or 0) < self.now() - SKEW:
            raise Refused("answer.stale", "/receipt/timestamp", "must be of now")
        if len(wire["items"]) > request.get("max_results", 20):
            raise Refused("answer.too_many", "/items", "must be at most max_results")
        report.unchecked = [one for one in report.unchecked if one.name != "unchecked.query"]
        return Answer(wire, report)

    def export(self) -> Flow[Bundle]:
        """Everything that the grant shows, as a bundle, verified."""
        grant = yield from self.held()
        if "export" not in term(grant, "operations"):
            raise UsageError("the grant does not allow exports", "grant")
        url = yield from self._endpoint("export")
        response = yield from self._asked(Request("POST", url, {}, b"", MAX_BUNDLE, WHOLE_BUNDLE))
        accepted(response)
        lines = list(split_lines(response.body))
        report = yield from self._checked(lambda: verify_bundle(lines, self._reader()))
        wanted = {
            "grant_id": grant["grant_id"],
            "profile": grant["redaction_profile"],
            "trust_level": term(grant, "trust_level"),
            "grantee": grant["grantee"],
        }
        if report.facts["projected"] != wanted or report.facts["principal"] != granter_of(grant):
            raise Refused("bundle.projected", "/0/projected", "must be of this grant")
        if report.facts["items"] > grant["max_items"]:
            raise Refused("grant.too_many", "/0/items", "must be at most max_items")
        report.unchecked = [one for one in report.unchecked if one.name != "unchecked.grant"]
        return Bundle(response.body, report)

    def audit(self, asked: dict[str, Any]) -> Flow[list[dict[str, Any]]]:
        """The receipts that name the grantee, newest first, each verified."""
        url = yield from self._beside("/oap/audit")
        given = {name: value for name, value in asked.items() if value is not None}
        response = yield from self._asked(Request("GET", url + ("?" + urlencode(given) if given else "")))
        log = hold(_LOG, read_json(response), "log.malformed")
        for place, receipt in enumerate(log["receipts"]):
            yield from self._receipt(receipt, f"/receipts/{place}")
        found: list[dict[str, Any]] = log["receipts"]
        return found

    def _receipt(self, receipt: Json, place: str) -> Flow[dict[str, Any]]:
        grant = yield from self.held()
        checked: list[dict[str, Any]] = []

        def judge() -> Report:
            report = Report("receipt")
            checked[:] = [check_receipt(receipt, self._reader(), report)]
            return report

        try:
            yield from self._checked(judge)
        except Refused as wrong:
            raise wrong.under(place) from None
        if checked[0]["principal_did"] != granter_of(grant):
            raise Refused("receipt.other_chain", place + "/principal_did", "must be the granter")
        return checked[0]

    def ack(self, receipt: dict[str, Any]) -> Flow[dict[str, Any]]:
        """Countersigns a receipt that names the grantee; the joint receipt."""
        own = yield from self._receipt(receipt, "")
        if own["agent_did"] != self.key.did:
            raise UsageError("the receipt names another agent than the key's DID", "receipt")
        url = yield from self._beside("/oap/memory/ack")
        signature = countersignature(self.key, own)
        response = yield _post(url, {"receipt_id": own["receipt_id"], "signature": signature})
        joint = hold(_JOINT, read_json(response), "receipt.malformed")["receipt"]
        checked = yield from self._receipt(joint, "/receipt")
        if content(checked) != content(own) or signature not in checked["signatures"]:
            raise Refused("receipt.countersignature", "/receipt/signatures", "must be the receipt with this signature")
        return checked

    def state(self) -> Flow[str]:
        """What the gateway says of the grant: `draft`, `active`, `expired` or `revoked`."""
        grant = yield from self.held()
        url = f"{(yield from self._endpoint('grant'))}/{grant['grant_id']}"
        proof = grant_proof(self.key, url, hash_of(grant), self.now())
        response = yield Request("GET", url, {"Authorization": "OAP-Proof " + proof})
        answer = hold(_STATE, read_json(response), "state.malformed")
        if answer["grant_id"] != grant["grant_id"]:
            raise Refused("state.other", "/grant_id", "must be the grant's")
        return str(answer["state"])

    def revoked(self) -> Flow[bool]:
        """Whether the granter's status list marks the grant as revoked."""
        grant = yield from self.held()
        if "status" not in grant:
            raise UsageError("the grant has no place in a status list", "grant")
        place = grant["status"]["status_list"]
        response: Response = yield Request("GET", place["uri"])
        accepted(response)
        text = response.body.decode("ascii", "replace").strip()
        listed, report = read_status_list(text, self._reader())
        if report.facts["issuer"] != granter_of(grant) or report.facts["uri"] != place["uri"]:
            raise Refused("status.claim", "/sub", "must be the granter's list at that address")
        return listed.revoked(place["idx"])


def origin(url: str) -> str:
    """Scheme, host and port of an address.

    >>> origin("https://a.example:8443/oap/memory/query")
    'https://a.example:8443'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Unreachable("the address of the gateway is no address") from None
    if parts.scheme not in ("https", "http") or not parts.netloc or "@" in parts.netloc:
        raise Unreachable("the address of the gateway must be https")
    return f"{parts.scheme}://{parts.netloc}"


def _post(url: str, body: Json) -> Request:
    headers = {"Content-Type": "application/oap+json", "Accept": "application/oap+json"}
    try:
        return Request("POST", url, headers, canonical(body))
    except Refused:
        raise UsageError("what is sent must be JSON, without lone surrogates") from None
