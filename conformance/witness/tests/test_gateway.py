"""The gateway from outside: what a grantee sees, and what is refused with which code."""

import unittest
import zlib
from typing import Any

from tests.client import Grantee, Served
from witness.canon import jcs, read, sha256, unb64
from witness.keys import Documents, Jwt, check_detached, verify
from witness.ledger import check_chain, check_receipt, receipt_bytes
from witness.moments import write_time
from witness.reader import check_item

CONTACT = {
    "entity_type": "oap.entity.contact",
    "names": {"given": "Annemarie", "family": "Feldkamp", "preferred_pronoun": "she_her"},
    "channels": [
        {"type": "email", "value": "af@b.example", "primary": True},
        {"type": "phone", "value": "+4915112345678"},
    ],
    "affiliations": [{"organization_id": "ent_org", "role": "architect", "since": "2020"}],
    "languages": ["de"],
    "skills": ["drawing"],
}


def fact(text: str, *labels: str, **more: Any) -> dict[str, Any]:
    return {"kind": "fact", "content": {"text": text}, **({"labels": list(labels)} if labels else {}), **more}


class Case(unittest.TestCase):
    did: str | None = None
    has_model = False

    def setUp(self) -> None:
        self.served = Served(self.did, self.has_model)
        self.addCleanup(self.served.close)
        self.grantee = Grantee(self.served)

    def capture(self, *items: dict[str, Any]) -> list[str]:
        return self.served.owner("capture", items=list(items))["item_ids"]

    def begin(self, **draft: Any) -> dict[str, Any]:
        grant = self.grantee.granted(**draft)
        status, said = self.grantee.exchange(grant)
        self.assertEqual(status, 200, said)
        return grant

    def refused(self, answer: tuple[int, Any], status: int, code: str) -> None:
        self.assertEqual((answer[0], answer[1].get("error")), (status, code), answer[1])
        self.assertEqual(set(answer[1]), {"error", "message", "request_id"})

    def texts(self, **asked: Any) -> list[str]:
        return [item["content"]["text"] for item in self.grantee.items(**asked)]


class Answers(Case):
    def test_an_answer_proves_itself(self) -> None:
        self.capture(fact("Tea at ten, write to ann@b.example", "tea", extensions={"x.y": {"a": [1, {}, []]}}))
        self.begin(trust_level=2)
        status, answer = self.grantee.query(query="tea")
        self.assertEqual(status, 200)
        documents = Documents(self.served.ask("GET", "/.well-known/did.json")[1])
        for item in answer["items"]:
            check_item(item, documents)
            self.assertEqual(item["content"]["text"], "Tea at ten, write to [email]")
        receipt = answer["receipt"]
        check_receipt(receipt, documents)
        items = {"items": answer["items"], "response_id": answer["response_id"]}
        self.assertEqual(receipt["output_hash"], sha256(jcs(items)))
        x = self.served.house.signer.x
        self.assertTrue(verify(x, jcs(answer, "items", "signature"), answer["signature"]["value"]))

    def test_the_whole_chain_of_receipts_holds(self) -> None:
        self.capture(fact("one"), fact("two"))
        self.begin()
        self.grantee.items()
        entries = [r for r in self.served.house.ledger._by_id.values() if r["tool_did"]]
        check_chain(entries, Documents())
        asked = {"chain": "personal", "from": 0, "limit": 1000}
        self.assertEqual(self.served.owner("audit", asked=asked)["receipts"], entries)
        self.assertEqual(self.served.owner("audit", asked={**asked, "from": 2, "limit": 3})["receipts"], entries[2:5])

    def test_a_contact_at_each_level(self) -> None:
        self.capture({"kind": "fact", "content": {"structured": CONTACT}, "labels": ["x"]}, fact("Annemarie called"))
        shown: list[set[str]] = []
        for level in range(5):
            self.begin(trust_level=level, redaction_profile="oap.profile.projection.contact.v1")
            items = self.grantee.items(kinds=["fact"])
            entity = next(i for i in items if "structured" in i.get("content", {}))["content"]["structured"]
            shown.append(set(entity))
            if level == 2:
                self.assertEqual(entity["channels"], [CONTACT["channels"][0]])
            if level == 3:
                self.assertEqual(self.texts(query="called"), ["[third_party] called"])
        self.assertEqual(shown[0], {"names"})
        self.assertEqual(shown[1] - shown[0], {"affiliations"})
        self.assertEqual(shown[2] - shown[1], {"channels", "languages"})
        self.assertEqual(shown[3] - shown[2], {"skills"})
        self.assertEqual(shown[4], set(CONTACT))

    def test_hidden_text_neither_matches_nor_ranks(self) -> None:
        self.capture(fact("write to secretword@b.example"))
        self.begin(trust_level=2)
        self.assertEqual(self.grantee.items(query="secretword"), [])
        self.assertEqual(self.grantee.items(min_confidence=0.1), [])

    def test_pages(self) -> None:
        self.capture(*(fact(f"tea number {n}") for n in range(7)))
        self.begin()
        for query in ("", "tea"):
            got, cursor = [], None
            while True:
                status, answer = self.grantee.query(query=query, max_results=3, cursor=cursor)
                self.assertEqual(status, 200, answer)
                got += [item["item_id"] for item in answer["items"]]
                if (cursor := answer["next_cursor"]) is None:
                    break
            self.assertEqual(len(got), 7)
            self.assertEqual(len(set(got)), 7)
        first = self.grantee.query(query="tea", max_results=3)[1]["next_cursor"]
        self.refused(self.grantee.query(query="te", cursor=first), 400, "invalid_input")
        self.refused(self.grantee.query(query="tea", cursor="x"), 400, "invalid_input")

    def test_max_items_counts_what_was_ever_disclosed(self) -> None:
        self.capture(*(fact(f"tea {n}") for n in range(4)))
        self.begin(max_items=2)
        first = {item["item_id"] for item in self.grantee.items(max_results=1)}
        both = {item["item_id"] for item in self.grantee.items()}
        self.assertEqual(len(both), 2)
        self.assertTrue(first < both)
        self.capture(fact("newer tea"))
        self.assertEqual({item["item_id"] for item in self.grantee.items(query="tea")}, both)

    def test_the_filter(self) -> None:
        self.capture(
            fact("a", "x", "y", provenance={"captured_at": "2026-01-01T00:00:00Z", "confidence": 0.5}),
            fact("b", "x", subject_entity_id="ent_b", provenance={"captured_at": "2026-01-02T00:00:00Z"}),
            fact("c", "y", sensitivity="restricted"),
            fact("d", exportable=False),
            fact("e", scope_id="work"),
            {**fact("f"), "kind": "summary"},
        )
        for filters, expected in (
            ({}, "abf"),
            ({"labels_any": ["x"]}, "ab"),
            ({"labels_all": ["x", "y"]}, "a"),
            ({"labels_all": []}, ""),
            ({"labels_any": []}, ""),
            ({"exclude_labels": ["y"]}, "bf"),
            ({"exclude_labels": []}, "abf"),
            ({"kinds": ["summary"]}, "f"),
            ({"sensitivities": ["restricted"]}, "c"),
            ({"subject_entity_ids": ["ent_b"]}, "b"),
            ({"captured_before": "2026-01-02T00:00:00Z"}, "a"),
            ({"captured_after": "2026-01-02T00:00:00Z", "kinds": ["fact"]}, "b"),
            ({"min_confidence": 0.5, "labels_any": ["x"]}, "ab"),
            ({"min_confidence": 0.51, "labels_any": ["x"]}, "b"),
        ):
            with self.subTest(filters):
                self.begin(filter=filters)
                self.assertEqual("".join(sorted(self.texts())), expected)

    def test_correction_and_expiry(self) -> None:
        one, _ = self.capture(fact("before", "x"), fact("gone", expires_at="2026-01-01T00:00:00Z"))
        self.served.owner("correct", item_id=one, item={"content": {"text": "after"}})
        self.begin()
        (item,) = self.grantee.items()
        self.assertEqual((item["content"]["text"], item["version"]), ("after", 2))
        self.assertEqual([link["event"] for link in item["integrity"]["chain"]], ["capture", "correct"])

    def test_erasure(self) -> None:
        one, two = self.capture(fact("source"), fact("other"))
        (three,) = self.capture(fact("made of it", derived_from=[one]))
        grant = self.begin()
        receipt = self.served.owner("delete", item_ids=[one])["deletion_receipt"]
        self.assertEqual(receipt["scope"]["cascade"]["derived"], [three])
        self.assertEqual(receipt["scope"]["cascade"]["grants_shrunk"], [grant["grant_id"]])
        self.assertTrue(verify(self.served.house.signer.x, jcs(receipt, "signature"), receipt["signature"]["value"]))
        self.assertEqual([item["item_id"] for item in self.grantee.items()], [two])

    def test_an_export(self) -> None:
        self.capture(fact("one"), fact("two"))
        grant = self.begin(operations=["query", "export"], trust_level=2)
        status, bundle = self.grantee.ask("POST", "/oap/memory/export")
        self.assertEqual(status, 200)
        *lines, trailer = [read(line) for line in bundle.splitlines()]
        self.assertEqual(lines[0]["projected"]["grant_id"], grant["grant_id"])
        self.assertEqual(trailer["hash"], sha256(bundle[: bundle.rindex(b"\n", 0, -1) + 1]))
        for line in lines[1:]:
            check_item(line["item"], Documents(*lines[0]["documents"]))
            self.assertNotIn("relevance", line["item"])


class Refusals(Case):
    def test_tokens_and_proofs(self) -> None:
        self.begin()
        path = "/oap/memory/query"
        self.assertEqual(self.served.ask("POST", path, {})[0], 401)
        now = self.served.house.clock.now() // 1000
        for changed in ({"htm": "GET"}, {"htu": "http://x.example/"}, {"ath": "x"}, {"iat": now - 400}, {"iat": now + 400}, {"jti": ""}):
            with self.subTest(changed):
                self.refused(self.grantee.ask("POST", path, {}, **changed), 401, "auth_required")
        self.assertEqual(self.grantee.ask("POST", path, {}, jti="once")[0], 200)
        self.refused(self.grantee.ask("POST", path, {}, jti="once"), 401, "auth_required")
        mallory = Grantee(self.served)
        mallory.token = self.grantee.token
        self.refused(mallory.query(), 401, "auth_required")

    def test_grant_proofs(self) -> None:
        grant = self.grantee.granted()
        now = self.served.house.clock.now() // 1000
        for changed in (
            {"aud": "http://x.example/oap/memory/grant"}, {"iss": "did:key:z6Mk"}, {"exp": now + 61}, {"jti": ""},
            {"iat": now - 400, "exp": now - 340}, {"iat": now + 301, "exp": now + 310}, {"grant_hash": "sha256:" + "0" * 64},
        ):  # fmt: skip
            with self.subTest(changed):
                self.refused(self.grantee.exchange(grant, **changed), 401, "auth_required")
        self.refused(Grantee(self.served).exchange(grant), 401, "auth_required")
        self.refused(self.grantee.exchange({**grant, "max_items": 99}), 400, "invalid_input")
        self.assertEqual(self.grantee.exchange(grant, jti="once")[0], 200)
        self.refused(self.grantee.exchange(grant, jti="once"), 401, "auth_required")

    def test_a_revocation_takes_effect_at_once(self) -> None:
        grant = self.begin()
        self.served.owner("revoke", grant_id=grant["grant_id"])
        self.refused(self.grantee.query(), 403, "policy_block")
        self.refused(self.grantee.exchange(grant), 403, "policy_block")
        text = self.served.ask("GET", "/oap/memory/status")[1].decode()
        bits = zlib.decompress(unb64(Jwt.read(text, "statuslist+jwt").claims["status_list"]["lst"]))
        place = grant["status"]["status_list"]["idx"]
        self.assertEqual((len(bits), bits[place // 8] >> place % 8 & 1), (16384, 1))

    def test_queries(self) -> None:
        self.begin(purpose_codes=["briefing"])
        for asked in (
            {"quer": ""}, {"query": None}, {"max_results": 0}, {"max_results": 101}, {"kinds": ["x"]}, {"labels_any": "x"},
            {"min_confidence": 2}, {"integrity": "none"}, {"request_id": "x"}, {"query": "x" * 4097}, {"cursor": "x" * 257},
        ):  # fmt: skip
            with self.subTest(asked):
                self.refused(self.grantee.query(**asked), 400, "invalid_input")
        self.refused(self.grantee.query(include_embeddings=True), 403, "policy_block")
        self.refused(self.grantee.query(purpose="other"), 403, "policy_block")
        self.assertEqual(self.grantee.query(purpose="briefing", kinds=None, max_results=None)[0], 200)
        self.refused(self.grantee.ask("POST", "/oap/memory/export"), 403, "policy_block")

    def test_budgets(self) -> None:
        self.begin(budget={"queries": 2})
        self.assertEqual([self.grantee.query()[0] for _ in range(2)], [200, 200])
        self.refused(self.grantee.query(), 429, "budget_exhausted")
        self.capture(*(fact(f"tea {n}") for n in range(10)))
        self.begin(budget={"epsilon": 0.035})
        self.assertEqual([self.grantee.query()[0] for _ in range(2)], [200, 200])
        self.refused(self.grantee.query(), 429, "budget_exhausted")

    def test_grants_beyond_what_is_declared(self) -> None:
        for draft in (
            {"max_items": 10001}, {"expires_at": "2036-01-01T00:00:00Z"}, {"expires_at": "2026-01-01T00:00:00Z"},
            {"redaction_profile": "oap.profile.projection.full.v1", "trust_level": 3}, {"filter": {"x": 1}},
            {"redaction_profile": "oap.profile.projection.none.v1"}, {"filter": {"scopes": ["work"]}}, {"purpose": " "},
        ):  # fmt: skip
            with self.subTest(draft), self.assertRaises(ValueError):
                self.grantee.granted(**draft)


class Others(Case):
    def test_delegation(self) -> None:
        self.capture(*(fact(f"tea {n}") for n in range(3)))
        third = Grantee(self.served)
        parent = self.begin(max_items=2, delegable={"max_depth": 1})
        self.refused(third.exchange(self.grantee.delegate(parent, third, max_items=3), [parent]), 400, "invalid_input")
        child = self.grantee.delegate(parent, third)
        self.refused(third.exchange(child, [child]), 400, "invalid_input")
        status, said = third.exchange(child, [parent])
        self.assertEqual(status, 200, said)
        self.assertIn("status", said)
        mine, theirs = self.grantee.items(max_results=1), third.items()
        self.assertEqual(len({item["item_id"] for item in mine + theirs}), 2)
        self.served.owner("revoke", grant_id=parent["grant_id"])
        self.refused(third.query(), 403, "policy_block")

    def test_the_state_of_a_grant(self) -> None:
        grant = self.grantee.granted()
        path = f"/oap/memory/grant/{grant['grant_id']}"
        proof = self.grantee.proof(self.served.house.origin + path)
        headers = {"Authorization": f"OAP-Proof {proof}"}
        self.assertEqual(self.served.ask("GET", path, headers=headers)[1], {"grant_id": grant["grant_id"], "state": "active"})
        self.assertEqual(self.served.ask("GET", path, headers=headers)[0], 404)
        self.assertEqual(self.served.ask("GET", path)[0], 404)

    def test_audit_and_countersignature(self) -> None:
        self.capture(fact("one"))
        self.begin()
        receipt = self.grantee.query()[1]["receipt"]
        status, log = self.grantee.ask("GET", "/oap/audit?limit=5")
        self.assertEqual(status, 200)
        self.assertEqual(log["receipts"][0], receipt)
        self.assertTrue(all(one["agent_did"] == self.grantee.did for one in log["receipts"]))
        signer = self.grantee.signer
        signature = {"by": signer.kid, "alg": "EdDSA", "value": signer.raw(receipt_bytes(receipt))}
        body = {"receipt_id": receipt["receipt_id"], "signature": signature}
        joint = self.served.ask("POST", "/oap/memory/ack", body)[1]["receipt"]
        self.assertEqual(joint["signatures"], [*receipt["signatures"], signature])
        check_receipt(joint, Documents())
        self.assertEqual(self.served.ask("POST", "/oap/receipt/verify", joint)[1]["valid"], True)
        self.assertEqual(self.served.ask("POST", "/oap/receipt/verify", {**receipt, "type": "consent"})[0], 404)

    def test_forms_of_http(self) -> None:
        status, said, headers = self.served.ask("PUT", "/oap/memory/query")
        self.assertEqual((status, headers["Allow"]), (405, "POST"))
        self.assertEqual(self.served.ask("GET", "/nothing")[0], 404)
        status, said, headers = self.served.ask("POST", "/oap/memory/grant", b"{}", {"Content-Type": "text/plain"})
        self.refused((status, said), 400, "invalid_input")
        self.assertEqual(self.served.ask("POST", "/oap/memory/grant", b" " * 131073)[0], 413)
        status, said, headers = self.served.ask("POST", "/oap/memory/query", {})
        self.assertEqual(headers["WWW-Authenticate"], 'DPoP algs="EdDSA"')
        headers = self.served.ask("GET", "/.well-known/oap-memory.json")[2]
        self.assertEqual(headers["Cache-Control"], "max-age=60")
        tag = {"If-None-Match": headers["ETag"]}
        self.assertEqual(self.served.ask("GET", "/.well-known/oap-memory.json", headers=tag)[0], 304)
        self.assertEqual(self.served.ask("GET", "/.well-known/did.json", headers=tag)[0], 200)

    def test_who_asks_too_often_is_told_when_to_ask_again(self) -> None:
        self.capture(fact("one"))
        self.begin()
        answers = [self.grantee.ask("GET", "/oap/audit?limit=1")[0] for _ in range(61)]
        self.assertEqual(set(answers[:60]), {200})
        self.assertEqual(answers[60], 429)
        windows = self.served.house.windows
        windows.take("x", "", 2, 1_000)
        windows.take("x", "", 2, 3_500)
        self.assertEqual([windows.room("x", "", 2, at) for at in (3_500, 60_999, 61_000)], [58, 1, 0])


class Keys(Case):
    did = "did:web:witness.example"

    def test_a_rotation_leaves_what_was_signed(self) -> None:
        self.capture(fact("before"))
        grant = self.begin()
        self.served.owner("rotate")
        self.capture(fact("after"))
        document = self.served.ask("GET", "/.well-known/did.json")[1]
        new, old = document["verificationMethod"]
        self.assertEqual((new["id"], old["id"]), (f"{self.did}#key-2", f"{self.did}#key-1"))
        self.assertIn("expires", old)
        # The token and the grant of before hold, and both items prove themselves.
        status, answer = self.grantee.query()
        self.assertEqual((status, len(answer["items"])), (200, 2))
        for item in answer["items"]:
            check_item(item, Documents(document))
        self.assertEqual(answer["signature"]["kid"], new["id"])
        self.assertEqual(self.grantee.exchange(grant)[0], 200)
        self.assertEqual(Jwt.read(self.grantee.token, "oap-memory-grant+jwt").header["kid"], new["id"])
        manifest = self.served.ask("GET", "/.well-known/oap-memory.json")[1]
        check_detached(manifest, Documents(document), self.did, self.served.house.clock.now())

    def test_a_did_key_is_its_one_key(self) -> None:
        served = Served()
        self.addCleanup(served.close)
        with self.assertRaises(ValueError):
            served.owner("rotate")


class Gates(Case):
    def context(self, **said: Any) -> None:
        self.served.owner("context", context={"ccc_version": "1.0", "scope_id": "personal", **said})

    def test_what_is_owed_is_kept_back(self) -> None:
        self.capture(fact("plan", "strategy"), fact("tea", "home"))
        grant = self.begin(trust_level=3)
        nda = {
            "id": "n", "counterparties": ["did:web:other.example"], "type": "mutual", "valid_from": "2020-01-01",
            "valid_until": "2099-01-01", "covered_categories": ["strategy"], "jurisdiction": "DE",
            "document_hash": "sha256:" + "0" * 64,
        }  # fmt: skip
        for said, seen in (
            ({}, 2),
            ({"embargo_list": [self.grantee.did]}, 0),
            ({"active_ndas": [nda]}, 1),
            ({"active_ndas": [{**nda, "counterparties": [self.grantee.did]}]}, 2),
            ({"active_ndas": [{**nda, "valid_until": "2021-01-01"}]}, 2),
            ({"regulatory_classification": "medical_confidentiality"}, 0),
            ({"professional_codes": ["bar"]}, 0),
        ):
            self.context(**said)
            self.assertEqual(len(self.texts()), seen, said)
        self.served.owner("consent", grant_id=grant["grant_id"])
        self.assertEqual(len(self.texts()), 2)

    def test_another_scope_needs_a_bridge(self) -> None:
        self.capture(fact("board", "dates", scope_id="work"), fact("merger", "deals", scope_id="work"), fact("tea"))
        wide = {"filter": {"scopes": ["personal", "work"]}}
        with self.assertRaises(ValueError):
            self.grantee.granted(**wide)
        until = write_time(self.served.house.clock.now() + 60_000)
        draft = {"from_scope": "work", "to_scope": "personal", "data_categories": ["dates"], "valid_until": until}
        bridge = self.served.owner("bridge", draft=draft)["bridge"]
        self.begin(**wide)
        self.assertEqual(sorted(self.texts()), ["board", "tea"])
        self.context(security_clearance=["home"])
        self.assertEqual(self.texts(), ["tea"])
        self.context()
        self.served.owner("unbridge", bridge_id=bridge["bridge_id"])
        self.assertEqual(self.texts(), ["tea"])


class Bearer(Case):
    def test_the_log_under_a_bearer_token_is_that_of_its_grant(self) -> None:
        self.begin()
        self.grantee.query()
        grant = self.begin(bearer=True)
        headers = {"Authorization": f"Bearer {self.grantee.token}"}
        status, log, _ = self.served.ask("GET", "/oap/audit", headers=headers)
        grants = {one["policy_decisions"][0]["grant_hash"] for one in log["receipts"]}
        self.assertEqual((status, grants), (200, {sha256(jcs(grant))}))


class Vectors(Case):
    has_model = True

    def test_vectors_are_of_what_was_got_for_those_who_may(self) -> None:
        first, second = self.capture(fact("tea"), fact("coffee"))
        self.begin()
        self.refused(self.grantee.ask("GET", f"/oap/memory/vec/{first}"), 403, "policy_block")
        self.begin(embedding_access=True)
        self.refused(self.grantee.ask("GET", f"/oap/memory/vec/{first}"), 404, "not_found")
        item = next(one for one in self.grantee.items(include_embeddings=True) if one["item_id"] == first)
        self.assertTrue(item["embedding_ref"]["vector_url"].endswith(f"/oap/memory/vec/{first}"))
        status, vector = self.grantee.ask("GET", f"/oap/memory/vec/{first}")
        self.assertEqual((status, len(vector)), (200, 128))
        self.assertNotIn("embedding_ref", self.grantee.items()[0])
        self.begin(embedding_access=True, trust_level=3)
        self.grantee.items()
        self.refused(self.grantee.ask("GET", f"/oap/memory/vec/{second}"), 404, "not_found")


if __name__ == "__main__":
    unittest.main()