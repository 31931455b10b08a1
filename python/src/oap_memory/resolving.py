"""DIDs that are domain names (did:web): where their documents are, and reading them (protocol section 2)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from .documents import Document, Documents, document
from .errors import OapError, Refused, Unreachable
from .flow import Flow, Request, read_json
from .form import DID, fits

T = TypeVar("T")

MAX_DOCUMENT = 65_536
"""Bytes of a DID document."""
SECONDS = 5.0
"""Seconds for a DID document, in all."""
FRESH = 600.0
"""Seconds that a document from the network is used."""
MAX_SIGNERS = 16
"""DIDs that are resolved for one document."""


def did_web_url(did: str) -> str | None:
    """Where the document of a did:web is, or `None` where it is none.

    >>> did_web_url("did:web:a.example%3A8443:people:ann")
    'https://a.example:8443/people/ann/did.json'
    >>> did_web_url("did:web:127.0.0.1") is None
    True
    """
    if not did.startswith("did:web:") or not fits(DID, did):
        return None
    place, *path = did[8:].split(":")
    host, _, port = place.lower().partition("%3a")
    origin = "https://" + host + (f":{port}" if port else "")
    return origin + ("/" + "/".join(path) if path else "/.well-known") + "/did.json"


def resolve(did: str, *, local: bool) -> Flow[Document]:
    """Fetches the document of a did:web. With `local` plain http is tried too.

    >>> next(resolve("did:web:a.example", local=False)).url
    'https://a.example/.well-known/did.json'
    """
    url = did_web_url(did)
    if url is None:
        raise Unreachable("the DID has no document: only did:web and did:key are resolved")
    headers = {"Accept": "application/did+json, application/json"}
    try:
        response = yield Request("GET", url, headers, limit=MAX_DOCUMENT, seconds=SECONDS)
    except Unreachable:
        if not local:
            raise
        plain = "http" + url.removeprefix("https")
        response = yield Request("GET", plain, headers, limit=MAX_DOCUMENT, seconds=SECONDS)
    read = document(read_json(response))
    if read.did != did:
        raise Refused("document.other", "/id", "must be the DID that was asked for")
    return read


def with_documents(documents: Documents, judge: Callable[[], T], *, local: bool) -> Flow[T]:
    """What `judge` returns, with the documents fetched that it found missing, a bounded number of them.

    Where it refuses, those that were fetched earlier are fetched again: a key may have been rotated since.

    >>> from .report import Reader
    >>> known = Documents()
    >>> def judge() -> None:
    ...     Reader(known, 0).key("did:web:a.example#key-1", "did:web:a.example", 0, "thing.signature", "/signature")
    >>> next(with_documents(known, judge, local=False)).url
    'https://a.example/.well-known/did.json'
    """
    tried: set[str] = set()
    documents.forget(time.monotonic() - FRESH)
    while True:
        documents.missing.clear()
        try:
            return judge()
        except Refused:
            wanted = sorted(documents.missing - tried) or sorted(documents.fetched.keys() - tried)
            if not wanted or len(tried) >= MAX_SIGNERS:
                raise
            tried.add(wanted[0])
            with suppress(OapError):
                documents.fetch((yield from resolve(wanted[0], local=local)), time.monotonic())
