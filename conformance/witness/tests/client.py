"""A gateway on a free port, and a grantee that asks it."""

import http.client
import json
import secrets
import threading
from typing import Any
from urllib.parse import urlsplit

from witness.canon import b64, digest, jcs, sha256
from witness.house import House
from witness.items import DAY
from witness.keys import Signer
from witness.moments import write_time
from witness.owner import command
from witness.wire import Gateway, Server


class Served:
    """The gateway under test."""

    def __init__(self, did: str | None = None, has_model: bool = False) -> None:
        self.house = House("http://127.0.0.1:0", Signer.new(did), has_model=has_model)
        self._server = Server(("127.0.0.1", 0), Gateway(self.house))
        self.house.origin = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._server.gateway = Gateway(self.house)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def owner(self, do: str, **said: Any) -> dict[str, Any]:
        answer = command(self.house, {"do": do, **said})
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        split = urlsplit(self.house.origin)
        wire = http.client.HTTPConnection(str(split.hostname), split.port, timeout=30)
        data = body if isinstance(body, bytes) else None if body is None else jcs(body)
        sent = {"Content-Type": "application/oap+json"} if data is not None else {}
        wire.request(method, path, data, {**sent, **(headers or {})})
        answer = wire.getresponse()
        text = answer.read()
        said = dict(answer.getheaders())
        wire.close()
        kind = said.get("Content-Type", "")
        return answer.status, json.loads(text) if text and kind == "application/oap+json" else text, said


class Grantee:
    """Somebody with a key, and a token once a grant was exchanged."""

    def __init__(self, served: Served) -> None:
        self.served, self.signer, self.token = served, Signer.new(), ""

    @property
    def did(self) -> str:
        return self.signer.did

    def granted(self, **draft: Any) -> dict[str, Any]:
        """A grant to this grantee, by the owner."""
        until = write_time(self.served.house.clock.now() + 30 * DAY)
        said = {"purpose": "test", "filter": {}, "max_items": 100, "expires_at": until, "trust_level": 4}
        profile = "oap.profile.projection.memory.v1"
        return self.served.owner(
            "grant", draft={"grantee": self.did, **said, "redaction_profile": profile, **draft}
        )["grant"]

    def delegate(self, parent: dict[str, Any], to: "Grantee", **changed: Any) -> dict[str, Any]:
        """A child of a grant, signed by this grantee."""
        kept = {name: value for name, value in parent.items() if name not in ("signature", "status", "delegable", "parent")}
        child = {
            **kept,
            "grant_id": "mgr_0" + "".join(secrets.choice("0123456789ABCDEFGHJKMNPQRSTVWXYZ") for _ in range(25)),
            "grantee": to.did,
            "parent": sha256(jcs(parent)),
            **changed,
        }
        return {**child, "signature": self.signer.detached(child)}

    def proof(self, address: str, **changed: Any) -> str:
        now = self.served.house.clock.now() // 1000
        claims = {"iss": self.did, "sub": self.did, "aud": address, "iat": now, "exp": now + 60}
        return self.signer.jwt("oap-grant-proof+jwt", {**claims, "jti": b64(secrets.token_bytes(12)), **changed})

    def exchange(self, grant: dict[str, Any], chain: list[Any] | None = None, **proof: Any) -> tuple[int, Any]:
        path = "/oap/memory/grant"
        body = {"grant": grant, "proof": self.proof(self.served.house.origin + path, **proof)}
        status, said, _ = self.served.ask("POST", path, {**body, "chain": chain} if chain else body)
        if status == 200:
            self.token = said["memory_grant_jwt"]
        return status, said

    def dpop(self, method: str, path: str, **changed: Any) -> str:
        now = self.served.house.clock.now() // 1000
        header = {"typ": "dpop+jwt", "alg": "EdDSA", "jwk": {"kty": "OKP", "crv": "Ed25519", "x": self.signer.x}}
        claims = {"htm": method, "htu": self.served.house.origin + path, "iat": now, "ath": digest(self.token)}
        said = {**claims, "jti": b64(secrets.token_bytes(12)), **changed}
        text = f"{b64(jcs(header))}.{b64(jcs(said))}"
        return f"{text}.{self.signer.raw(text.encode())}"

    def ask(self, method: str, path: str, body: Any = None, **dpop: Any) -> tuple[int, Any]:
        proof = self.dpop(method, path.partition("?")[0], **dpop)
        headers = {"Authorization": f"DPoP {self.token}", "DPoP": proof}
        status, said, _ = self.served.ask(method, path, body, headers)
        return status, said

    def query(self, **asked: Any) -> tuple[int, Any]:
        return self.ask("POST", "/oap/memory/query", asked)

    def items(self, **asked: Any) -> list[Any]:
        status, said = self.query(**asked)
        if status != 200:
            raise ValueError(said)
        return said["items"]
