"""HTTP/1.1: routes, bodies, media types, errors (docs/protocol.md section 1)."""

import contextlib
import re
import sys
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import answer, audit, exchange, invoke, letters, published
from .canon import Malformed, jcs, read, sha256
from .grants import Grant
from .house import MAX_FAILED, House, Refused, refuse
from .keys import Documents, Invalid
from .moments import is_id, is_request_id, ulid
from .tokens import Request, check_token

ANONYMOUS_BODY = 131_072
BODY = 1_048_576
_MAX_HEAD = 32_768
_OAP = "application/oap+json"
_READ = {_OAP, "application/json"}

# What is answered while the gateway is locked down (section 10).
_ALWAYS = {"/.well-known/did.json", "/oap/memory/status", "/oap/incident", "/healthz", "/readyz"}

Reply = tuple[bytes, str]


class Gateway:
    """The routes of the grantee's side over one house."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.published = published.Published(house)
        house.documents = Documents(published.did_document(house))
        self._documents: dict[str, Callable[[], Any]] = {
            "/.well-known/oap-memory.json": lambda: self.published.memory_manifest,
            "/.well-known/oap-tool.json": lambda: published.tool_manifest(house),
            "/.well-known/oap-scopes.json": lambda: self.published.scopes,
            "/.well-known/did.json": lambda: published.did_document(house),
            "/.well-known/oap-key-handovers.json": lambda: {"principal": house.did, "handovers": house.handovers},
            "/.well-known/agent-card.json": lambda: published.agent_card(house),
        }
        self._gets: dict[str, Callable[[Exchange], Reply]] = {
            "/oap/memory/status": self._status,
            "/oap/audit": self._audit,
            "/oap/incident": lambda _: _json({"incidents": []}),
            "/healthz": lambda _: _json({"status": "ok"}),
            "/readyz": lambda _: _json({"status": "ok"}),
        }
        self._posts: dict[str, Callable[[Exchange], Reply]] = {
            "/oap/memory/grant": lambda e: _json(self._locked(exchange.exchange, e.json(), e.address)),
            "/oap/memory/query": self._query,
            "/oap/memory/export": self._export,
            "/oap/memory/ack": lambda e: _json(self._locked(audit.ack, e.json())),
            "/oap/receipt/verify": lambda e: _json(self._locked(audit.ours, e.json())),
            "/oap/discover": lambda e: _json(invoke.discover(house, e.json())),
            "/oap/invoke": self._invoke,
            "/oap/peer/letter": lambda e: (self._locked(letters.take, e.json(letters.MAX_LETTER)), _OAP),
            "/oap/data/delete": self._delete,
            "/oap/memory/changes": self._changes,
            "/oap/memory/changes/items": self._changes,
        }

    def _locked(self, what: Callable[..., Any], *given: Any) -> Any:
        with self.house.lock, self.house.clock.instant():
            self.house.shelf.sweep()
            return what(self.house, *given)

    def reply(self, e: "Exchange") -> Reply:
        """The answer to a request, or `Refused`."""
        path = e.path
        if self.house.locked_down and path not in _ALWAYS:
            refuse("policy_block", "the gateway is locked down")
        e.max_age = 60 if path in self._documents else 0
        gets: dict[str, Callable[[Exchange], Reply]] = {
            **self._gets,
            **{name: lambda _, make=make: _json(make()) for name, make in self._documents.items()},
        }
        for prefix, kind, route in (
            ("/oap/memory/grant/", "mgr_", self._state),
            ("/oap/memory/vec/", "mem_", self._vector),
        ):
            if path.startswith(prefix) and is_id(kind, path.removeprefix(prefix)):
                gets[path] = route
        known = {"GET": gets.get(path), "HEAD": gets.get(path), "POST": self._posts.get(path)}
        allowed = [method for method, route in known.items() if route]
        if not allowed:
            refuse("not_found", "nothing is here")
        route = known.get(e.method)
        if route is None:
            e.allow = ", ".join(allowed)
            refuse("method_not_allowed", "another method")
        return route(e)

    def _grant_of(self, e: "Exchange") -> Grant:
        """The token and its proof; then the failed requests of the last minute; then the proof is used up."""
        house, now = self.house, self.house.clock.now()
        token, proof = check_token(e.credential(), house.documents, house.did, house.origin, now // 1000)
        grant = house.grants.get(str(token.claims.get("grant_hash")))
        if grant is None or grant.grant_id != token.claims["grant_id"]:
            raise Invalid("the token is for no grant here")
        root = grant.line[0].hash
        if house.windows.count("failed", root, now) >= MAX_FAILED:
            refuse("rate_limited", "too many failed requests", house.windows.room("failed", root, MAX_FAILED, now))
        e.failed = lambda: house.windows.add("failed", root, house.clock.now())
        if proof:
            house.used.take("dpop", proof, now // 1000)
        return grant

    def _query(self, e: "Exchange") -> Reply:
        grant = self._grant_of(e)
        asked = answer.read_query(e.json(BODY), e.request_id)
        return _json(self._locked(answer.query, grant, asked))

    def _export(self, e: "Exchange") -> Reply:
        grant = self._grant_of(e)
        e.body(BODY)
        return self._locked(answer.export, grant), "application/jsonl"

    def _state(self, e: "Exchange") -> Reply:
        grant_id = e.path.rpartition("/")[2]
        return _json(self._locked(exchange.state, grant_id, e.all("Authorization"), e.address))

    def _vector(self, e: "Exchange") -> Reply:
        return self._locked(answer.vector, self._grant_of(e), e.path.rpartition("/")[2]), "application/octet-stream"

    def _audit(self, e: "Exchange") -> Reply:
        if e.all("Authorization"):
            grant = self._grant_of(e)
            return _json(self._locked(audit.of_grantee, grant, e.query))
        return _json(self._locked(audit.of_anybody, e.query))

    def _changes(self, e: "Exchange") -> Reply:
        """What changed is told to devices, and there are none (section 18)."""
        self._grant_of(e)
        refuse("policy_block", "of the owner's devices alone")

    def _delete(self, _: "Exchange") -> Reply:
        """The owner deletes, by a socket: nobody has a credential that holds here (section 8)."""
        raise Invalid("of the owner alone")

    def _status(self, _: "Exchange") -> Reply:
        with self.house.lock:
            return self.published.status_list().encode(), "application/statuslist+jwt"

    def _invoke(self, e: "Exchange") -> Reply:
        # What is refused from here on is refused in an envelope (section 12).
        body = e.envelope = e.json()
        action = invoke.action_of(body)
        invoke.check_envelope(body, self.house.clock.now())
        invoke.check_headers(body, e.all)
        if action == "memory_describe":
            return _json(self._locked(invoke.describe, body))
        invoke.caller_of(self.house, body)
        if action == "memory_grant":
            said = self._locked(exchange.exchange, body["input"], e.address)
            return _json(invoke.enveloped(self.house, body, said, said["receipt_id"]))
        grant = self._grant_of(e)
        said = self._locked(answer.query, grant, answer.read_query(body["input"], body["request_id"]))
        return _json(invoke.enveloped(self.house, body, said, said["receipt"]["receipt_id"]))


def _json(value: Any) -> Reply:
    return jcs(value), _OAP


class Exchange:
    """One request, and what its answer needs to know of it."""

    def __init__(self, handler: "Handler") -> None:
        self._handler = handler
        self.method = handler.command
        # As it was sent: the library folds slashes. The absolute form of RFC 9112 is read too.
        target = re.sub(r"^https?://[^/?#]*", "", handler.requestline.split()[1])
        self.path, _, self.query = target.partition("?")
        self.address = handler.server.gateway.house.origin + self.path
        given = handler.headers.get("OAP-Request-Id")
        self.request_id = given if is_request_id(given) else ulid(handler.server.gateway.house.clock.now())
        self.max_age, self.allow, self.after = 0, "", 0
        self.failed: Callable[[], None] = lambda: None
        self.envelope: Any = None

    def all(self, name: str) -> list[str]:
        return self._handler.headers.get_all(name) or []

    def credential(self) -> Request:
        return Request(self.method, self.address, self.all("Authorization"), self.all("DPoP"))

    def body(self, most: int = ANONYMOUS_BODY) -> bytes:
        return self._handler.take_body(most)

    def json(self, most: int = ANONYMOUS_BODY) -> Any:
        media = self._handler.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if media not in _READ:
            refuse("invalid_input", f"Content-Type: {_OAP}")
        return read(self.body(most))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "witness", ""
    server: "Server"
    timeout = 20
    # Headers and body are two writes: the second would wait for the caller's delayed acknowledgement of the first.
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self._taken = True

    def _length(self) -> int | None:
        """The body's length; None where it comes in chunks."""
        lengths = self.headers.get_all("Content-Length") or []
        coding = self.headers.get_all("Transfer-Encoding") or []
        if coding:
            if lengths or [one.strip().lower() for one in coding] != ["chunked"]:
                refuse("invalid_input", "Transfer-Encoding: chunked or none")
            return None
        if len(lengths) > 1 or not all(re.fullmatch(r"[0-9]{1,15}", one) for one in lengths):
            refuse("invalid_input", "Content-Length: a number")
        return int(lengths[0]) if lengths else 0

    def take_body(self, most: int) -> bytes:
        length = self._length()
        try:
            if length is None:
                data = self._chunks(most)
            elif length > most:
                refuse("too_large", "the body is too large")
            else:
                data = self.rfile.read(length)
                if len(data) < length:
                    refuse("invalid_input", "the body was cut")
        except TimeoutError:
            raise Refused("invalid_input", "the body did not come in time", 408) from None
        self._taken = True
        return data

    def _chunks(self, most: int) -> bytes:
        data = b""
        while True:
            line = self.rfile.readline(1024).split(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", line):
                refuse("invalid_input", "a body in chunks")
            size = int(line, 16)
            if len(data) + size > most:
                refuse("too_large", "the body is too large")
            if size == 0:
                while self.rfile.readline(1024).strip():
                    pass
                return data
            data += self.rfile.read(size)
            self.rfile.readline(8)

    def _answer(self) -> None:
        gateway = self.server.gateway
        self._taken = not (self.headers.get("Content-Length", "0") != "0" or self.headers.get("Transfer-Encoding"))
        e = Exchange(self)
        status = 200
        try:
            if sum(len(name) + len(value) + 4 for name, value in self.headers.items()) > _MAX_HEAD:
                self.send_error(431)
                return
            data, media = gateway.reply(e)
        except Refused as refused:
            e.failed()
            e.after = refused.after
            status, data, media = refused.status, self._error(e, refused.code, refused.message), _OAP
        except Malformed as error:
            e.failed()
            status, data, media = 400, self._error(e, "invalid_input", str(error)), _OAP
        except Invalid as error:
            e.failed()
            status, data, media = 401, self._error(e, "auth_required", str(error)), _OAP
        except Exception:  # noqa: BLE001 the reason is in the log alone
            traceback.print_exc(file=sys.stderr)
            status, data, media = 500, self._error(e, "internal_error", "a fault of the gateway"), _OAP
        self._send(e, status, data, media)

    def _error(self, e: Exchange, code: str, message: str) -> bytes:
        if e.envelope is not None and code != "internal_error":
            return jcs(invoke.refused(self.server.gateway.house, e.envelope, e.request_id, code, message))
        return jcs({"error": code, "message": message, "request_id": e.request_id})

    def _send(self, e: Exchange, status: int, data: bytes, media: str) -> None:
        if not self._taken:
            self._drain()
        tag = f'"{sha256(data)}"' if e.max_age and status == 200 else ""
        if tag and any(one.strip() in (tag, "*") for value in e.all("If-None-Match") for one in value.split(",")):
            status, data = 304, b""
        self.send_response_only(status)
        if status != 304:
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", f"max-age={e.max_age}" if e.max_age and status < 400 else "no-store")
        if tag:
            self.send_header("ETag", tag)
        if status == 401:
            self.send_header("WWW-Authenticate", 'DPoP algs="EdDSA"')
        if status == 405:
            self.send_header("Allow", e.allow)
        if e.after:
            self.send_header("Retry-After", str(e.after))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses before there is a request has the same body."""
        self.close_connection, self.request_version = True, "HTTP/1.1"
        data = jcs({"error": "invalid_input", "message": "no request that can be read", "request_id": ulid(self.server.gateway.house.clock.now())})
        self.send_response_only(code)
        self.send_header("Content-Type", _OAP)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _drain(self) -> None:
        """A body that nobody took: a little of it is read, so that the caller sees the answer."""
        self.close_connection = True
        self.connection.settimeout(1)
        with contextlib.suppress(OSError, Refused):
            self.rfile.read(min(self._length() or 0, 4 * BODY))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a log could hold what was sent."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], gateway: Gateway) -> None:
        self.gateway = gateway
        super().__init__(address, Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that went away is nobody's fault."""


