#!/usr/bin/env python3
"""A memory gateway that is none: what somebody writes in an afternoon. It shows what a failing report looks like.

    tiny.py PORT        serves on 127.0.0.1

It has the endpoints of RFC 0010 and none of its guarantees: nothing is signed, projected, bound, receipted or really deleted.
"""

import itertools
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ITEMS, GRANTS, NUMBER = {}, {}, itertools.count(1)


def manifest(origin):
    return {
        "principal": "did:web:tiny.example",
        "kinds_supported": ["fact"],
        "max_grant_size_items": 100,
        "embedding_profiles": [],
        "endpoints": {name: f"{origin}/oap/memory/{name}" for name in ("query", "grant", "export")},
        "memory_exchange": {"supported": True, "max_grant_duration_days": 30},
    }


def query(grant, asked):
    """The items with one of the grant's labels that have the words."""
    labels, words = grant["filter"].get("labels_any", []), asked.get("query", "").lower().split()
    found = [i for i in ITEMS.values() if not labels or set(labels) & set(i.get("labels", []))]
    found = [i for i in found if all(word in json.dumps(i).lower() for word in words)]
    return {"items": found[: asked.get("max_results", 20)]}


def setup(command):
    """The owner's side (docs/probes.md)."""
    match command["do"]:
        case "capture":
            ids = [f"mem_{next(NUMBER)}" for _ in command["items"]]
            ITEMS.update((i, item | {"item_id": i}) for i, item in zip(ids, command["items"]))
            return {"item_ids": ids}
        case "grant":
            grant = command["draft"] | {"grant_id": f"mgr_{next(NUMBER)}"}
            GRANTS[grant["grant_id"]] = grant
            return {"grant": grant}
        case "correct":
            ITEMS[command["item_id"]] |= command["item"]
        case "delete":
            for item in command["item_ids"]:
                ITEMS.pop(item, None)
            return {"deletion_receipt": {}}
        case "revoke":
            GRANTS.pop(command["grant_id"], None)
        case other:
            return {"lacks": other}
    return {}


class Tiny(BaseHTTPRequestHandler):
    def answer(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def do_GET(self):
        known = self.path == "/.well-known/oap-memory.json"
        origin = f"http://{self.headers['Host']}"
        self.answer(200 if known else 404, manifest(origin) if known else {"error": "not found"})

    def do_POST(self):
        try:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/setup":
                self.answer(200, setup(body))
            elif self.path == "/oap/memory/grant":
                self.answer(200, {"memory_grant_jwt": body["grant"]["grant_id"], "token_type": "Bearer"})
            elif self.path == "/oap/memory/query":
                token = self.headers.get("Authorization", " ").split()[-1:]
                self.answer(200, query(GRANTS[token[0]], body))
            else:
                self.answer(404, {"error": "not found"})
        except Exception as error:
            self.answer(500, {"error": repr(error)})

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Tiny).serve_forever()
