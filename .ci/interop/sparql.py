"""The W3C's tests of the SPARQL 1.1 Protocol that only read and of result formats, against the real program.

`$OAP_MEMORY` is the program; its formats are read by rdflib. The tests of the protocol are those of `w3c/rdf-tests`,
`sparql/sparql11/protocol/manifest.ttl`: 27 of 34, all but the seven that have an update done. Each is a request, and
the status and the result that the manifest expects. The graphs of the tests are sources here: what an agent learned
from an address is the graph of that name, and that address is a `brain:Source` in it.

The tests of result formats, all ten of `csv-tsv-res` and `json-res`, are in `gateway/tests/vectors/`, whose README says
what they are.
"""

import csv
import http.client
import io
import json
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import rdflib
from house import free_port, house
from rdflib.namespace import RDF, RDFS, XSD
from rdflib.query import Result
from rdflib.term import BNode, Identifier, Literal, URIRef

# Literals are what is written, and not another way to write their value.
rdflib.NORMALIZE_LITERALS = False

PATH = "/.well-known/brain/sparql"
SECONDS = 60
READING = 27
"""Tests of the manifest that only read."""
DATA = [f"http://kasei.us/2009/09/sparql/data/data{number}.rdf" for number in range(4)]
FORM = "application/x-www-form-urlencoded"
QUERY = "application/sparql-query"
UPDATE = "application/sparql-update"
JSON, CSV, TSV = "application/sparql-results+json", "text/csv", "text/tab-separated-values"
BOOLEAN = {JSON, "application/sparql-results+xml"}
TABULAR = BOOLEAN | {CSV, TSV}
RDF_TYPES = {"text/turtle", "application/n-triples", "application/rdf+xml"}
BOTH = f"ASK {{ <{DATA[1]}> a ?type . <{DATA[2]}> a ?type . }}"
NAMED = f"GRAPH ?g1 {{ <{DATA[1]}> a ?type }} GRAPH ?g2 {{ <{DATA[2]}> a ?type }}"
CONFLICT = """PREFIX foaf:  <http://xmlns.com/foaf/0.1/>
WITH <http://example/addresses>
DELETE { ?person foaf:givenName 'Bill' }
INSERT { ?person foaf:givenName 'William' }
WHERE {
    ?person foaf:givenName 'Bill'
}"""
VECTORS = Path(__file__).parents[2] / "gateway" / "tests" / "vectors" / "sparql-results.json"
RESULTS = 10
"""Tests of the W3C's two manifests of result formats."""
TERMS = [
    Literal('a "quote", a comma'),
    Literal("\t a tab, \\ and \\t"),
    Literal("line\nline\r\nline\rend"),
    Literal(""),
    Literal(" padded "),
    Literal("<&> ]]> 日本語 🦀"),
    Literal("tea", lang="en"),
    Literal("true", datatype=XSD.boolean),
    Literal("TRUE", datatype=XSD.boolean),
    Literal("007", datatype=XSD.integer),
    Literal("5", datatype=XSD.decimal),
    Literal(".5", datatype=XSD.decimal),
    Literal("1e3", datatype=XSD.double),
    Literal("INF", datatype=XSD.double),
    Literal("0.6", datatype=XSD.float),
    Literal("2026-11-24T08:00:00Z", datatype=XSD.dateTime),
    URIRef("https://page.example/a,b?c='d'&e=%22"),
    None,
]
"""What formats have to quote, or may write in short. No negative number: rdflib 7.6.0 cannot read one in TSV."""
AWKWARD = 'tea, "green" & white\n3 < 7, 日本語 🦀'


class Asked(NamedTuple):
    """A request of the manifest, and what it expects: media types, with yes as the answer or any, or a refusal."""

    name: str
    method: str
    parameters: list[tuple[str, str]]
    content_type: str | None = None
    body: bytes = b""
    expects: set[str] | None = None
    """`None` is a status of 4xx."""
    yes: bool = False


def yes(name: str, method: str, parameters: list[tuple[str, str]], body: str = "", content_type: str = QUERY) -> Asked:
    """A request that is answered with yes."""
    return Asked(name, method, parameters, content_type if method == "POST" else None, body.encode(), BOOLEAN, True)


def given(name: str, query: str, expects: set[str]) -> Asked:
    """A request that is answered in one of these formats."""
    return Asked(name, "POST", graphs("default", 0), QUERY, query.encode(), expects)


def bad(
    name: str, method: str, parameters: list[tuple[str, str]], content_type: str | None, body: bytes = b""
) -> Asked:
    """A request that is refused."""
    return Asked(name, method, parameters, content_type, body)


def graphs(which: str, *numbers: int) -> list[tuple[str, str]]:
    """The graphs that a request chooses."""
    return [(f"{which}-graph-uri", DATA[number]) for number in numbers]


TESTS = [
    yes("query_post_form", "POST", graphs("default", 0), "query=ASK%20%7B%7D", FORM),
    yes("query_dataset_default_graphs_get", "GET", [("query", BOTH), *graphs("default", 1, 2)]),
    yes("query_dataset_default_graphs_post", "POST", graphs("default", 1, 2), BOTH),
    yes("query_dataset_named_graphs_post", "POST", graphs("named", 1, 2), f"ASK {{ {NAMED} }}"),
    yes("query_dataset_named_graphs_get", "GET", [("query", f"ASK {{ {NAMED} }}"), *graphs("named", 1, 2)]),
    yes(
        "query_dataset_full",
        "POST",
        [*graphs("default", 3), *graphs("named", 1, 2)],
        f"ASK {{ <{DATA[3]}> a ?type {NAMED} }}",
    ),
    yes("query_multiple_dataset", "POST", graphs("named", 1, 2), f"ASK FROM <{DATA[3]}> {{ {NAMED} }}"),
    yes("query_get", "GET", [("query", "ASK {}"), *graphs("default", 0)]),
    given("query_content_type_select", "SELECT (1 AS ?value) {}", TABULAR),
    given("query_content_type_ask", "ASK {}", BOOLEAN),
    given("query_content_type_describe", "DESCRIBE <http://example.org/>", RDF_TYPES),
    given("query_content_type_construct", "CONSTRUCT { <s> <p> 1 } WHERE {}", RDF_TYPES),
    yes("query_post_direct", "POST", [], "ASK {}"),
    bad("bad_query_method", "PUT", [("query", "ASK {}"), *graphs("default", 0)], FORM),
    bad("bad_multiple_queries", "GET", [("query", "ASK {}"), ("query", "SELECT * {}")], None),
    bad("bad_query_wrong_media_type", "POST", [], "text/plain", b"ASK {}"),
    bad("bad_query_missing_form_type", "POST", [], None, b"query=ASK%20%7B%7D"),
    bad("bad_query_missing_direct_type", "POST", [], None, b"ASK {}"),
    bad("bad_query_non_utf8", "POST", [], f"{QUERY}; charset=UTF-16", "ASK {}".encode("utf-16")),
    bad("bad_query_syntax", "GET", [("query", "ASK {")], None),
    bad("bad_update_get", "GET", [("update", "CLEAR ALL")], None),
    bad("bad_multiple_updates", "POST", [], FORM, b"update=CLEAR%20NAMED&update=CLEAR%20DEFAULT"),
    bad("bad_update_wrong_media_type", "POST", [], "text/plain", b"CLEAR NAMED"),
    bad("bad_update_missing_form_type", "POST", [], None, b"update=CLEAR%20NAMED"),
    bad("bad_update_non_utf8", "POST", [], f"{UPDATE}; charset=UTF-16", "CLEAR NAMED".encode("utf-16")),
    bad("bad_update_syntax", "POST", [], FORM, b"update=CLEAR%20XYZ"),
    bad(
        "bad_update_dataset_conflict",
        "POST",
        [("using-named-graph-uri", "http://example/people")],
        UPDATE,
        CONFLICT.encode(),
    ),
]


class Service:
    """The service, as one caller."""

    def __init__(self, base: str, key: str | None) -> None:
        self.host, self.key = urlsplit(base).netloc, key

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        """One request: its status, media type and body."""
        if self.key:
            headers = {**headers, "Authorization": f"Bearer {self.key}"}
        connection = http.client.HTTPConnection(self.host, timeout=SECONDS)
        try:
            # Nothing that is not said here: `request` would not add a media type either.
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            kind = (answer.getheader("Content-Type") or "").partition(";")[0].strip()
            return answer.status, kind, answer.read()
        finally:
            connection.close()

    def asked(self, asked: Asked) -> tuple[int, str, bytes]:
        """A request of the manifest."""
        path = f"{PATH}?{urlencode(asked.parameters)}" if asked.parameters else PATH
        headers = {"Content-Type": asked.content_type} if asked.content_type else {}
        return self.send(asked.method, path, headers, asked.body)

    def query(self, query: str, accept: str) -> bytes:
        """A query that is answered in the format that is liked."""
        headers = {"Content-Type": QUERY, "Accept": accept}
        status, kind, body = self.send("POST", PATH, headers, query.encode())
        assert (status, kind) == (200, accept), (status, kind, body)
        return body

    def tool(self, tool: str, **arguments: object) -> dict:
        """What a memory tool answers for programs."""
        body = json.dumps({"tool": tool, "arguments": arguments}).encode()
        status, _, answer = self.send("POST", "/oap/agent/call", {"Content-Type": "application/json"}, body)
        assert status == 200, (status, answer)
        return json.loads(answer)["structured"]


def protocol(service: Service) -> None:
    """Each request of the manifest is answered, or refused, as it says."""
    for asked in TESTS:
        status, kind, body = service.asked(asked)
        if asked.expects is None:
            assert 400 <= status < 500 and status not in (401, 403, 404, 429), (asked.name, status, body)
            assert json.loads(body)["message"], (asked.name, body)
            continue
        assert status == 200 and kind in asked.expects, (asked.name, status, kind, body)
        if asked.yes:
            assert Result.parse(io.BytesIO(body), content_type=kind).askAnswer is True, (asked.name, body)


def rows(body: bytes, kind: str) -> list[tuple]:
    """Solutions as rdflib reads them."""
    found = Result.parse(io.BytesIO(body), content_type=kind)
    assert [str(name) for name in found.vars or []] == ["what", "sure", "source", "none"], (kind, found.vars)
    return [tuple(row) for row in found]


def formats(service: Service) -> None:
    """Every format says the same, to a reader that is not ours."""
    query = (
        "SELECT ?what ?sure ?source ?none WHERE { "
        "?fact brain:content ?what ; brain:confidence ?sure ; brain:source ?source "
        "OPTIONAL { ?fact brain:nothing ?none } } ORDER BY ?what"
    )
    as_json, as_xml = [rows(service.query(query, kind), kind) for kind in sorted(BOOLEAN)]
    assert as_json == as_xml and len(as_json) == len(DATA) + 1, (as_json, as_xml)
    for what, sure, source, none in as_json:
        assert isinstance(what, rdflib.Literal) and isinstance(source, rdflib.URIRef) and none is None, as_json
        assert sure.datatype == XSD.float, sure.datatype
    assert AWKWARD in [str(what) for what, *_ in as_json], as_json
    plain = [tuple("" if term is None else str(term) for term in row) for row in as_json]
    as_csv = rows(service.query(query, "text/csv"), "text/csv")
    assert [tuple("" if term is None else str(term) for term in row) for row in as_csv] == plain, (as_csv, plain)
    lines = service.query(query, "text/tab-separated-values").decode().splitlines()
    assert lines[0] == "?what\t?sure\t?source\t?none" and len(lines) == 1 + len(plain), lines
    assert all(line.count("\t") == 3 for line in lines), lines
    construct = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    read = [rdflib.Graph().parse(data=service.query(construct, kind), format=kind) for kind in sorted(RDF_TYPES)]
    assert all(set(graph) == set(read[0]) for graph in read), [len(graph) for graph in read]
    brain = rdflib.Namespace("https://trails.dev/ns/brain/v1#")
    facts = set(read[0].subjects(RDF.type, brain.Fact))
    assert len(facts) == len(DATA) + 1, facts
    assert rdflib.Literal("tea") in set(read[0].objects(None, RDFS.label)), "the topic has no label"
    status, kind, body = service.send("GET", PATH, {"Accept": "text/turtle"}, b"")
    described = rdflib.Graph().parse(data=body, format="turtle")
    sd = rdflib.Namespace("http://www.w3.org/ns/sparql-service-description#")
    service_of = described.value(None, RDF.type, sd.Service)
    assert (status, kind) == (200, "text/turtle") and service_of is not None, body
    assert str(described.value(service_of, sd.endpoint)).endswith(PATH), body


Table = tuple[list[str], list[list[Identifier | None]]]


def solutions(body: bytes, kind: str) -> Table:
    """The variables and the rows as rdflib reads them, with blank nodes by number: their names say nothing."""
    found = Result.parse(io.BytesIO(body), content_type=kind)
    blank: list[BNode] = []

    def named(term: Identifier | None) -> Identifier | None:
        if not isinstance(term, BNode):
            return term
        if term not in blank:
            blank.append(term)
        return BNode(str(blank.index(term)))

    return [str(name) for name in found.vars or []], [[named(term) for term in row] for row in found]


def texts(table: Table) -> tuple[list[str], list[list[str]]]:
    """All that CSV says of solutions."""
    names, rows = table
    return names, [["" if term is None else str(term) for term in row] for row in rows]


def by_value(table: Table) -> Table:
    """With one way to write a double: a result of the W3C's has `1.0e6` for what is `1.0E6` in its data."""
    names, rows = table

    def one(term: Identifier | None) -> Identifier | None:
        return Literal(term.value) if isinstance(term, Literal) and term.datatype == XSD.double else term

    return names, [[one(term) for term in row] for row in rows]


def in_each(service: Service, query: str) -> dict[str, Table]:
    """The solutions of a query in each format; every format says the same."""
    found = {kind: solutions(service.query(query, kind), kind) for kind in sorted(TABULAR)}
    for kind, table in found.items():
        if kind == CSV:
            assert texts(table) == texts(found[JSON]), (query, table, found[JSON])
        else:
            assert table == found[JSON], (query, kind, table, found[JSON])
    return found


def expected(vector: dict) -> Table:
    """The solutions that the W3C expects, of a document in the format of the test."""
    names, rows = vector["vars"], vector["rows"]
    if vector["media_type"] == JSON:
        document = json.dumps({"head": {"vars": names}, "results": {"bindings": rows}})
    elif vector["media_type"] == TSV:
        document = "".join("\t".join(line) + "\n" for line in [names, *rows])
    else:
        lines = io.StringIO()
        csv.writer(lines).writerows([names, *rows])
        document = lines.getvalue()
    return solutions(document.encode(), vector["media_type"])


def written(term: Identifier | None) -> str:
    """A term as a list of VALUES has it."""
    return "UNDEF" if term is None else term.n3().replace("\t", "\\t")


def results(service: Service) -> None:
    """The W3C's tests of result formats: what it expects in the format of each, and the same in the others."""
    vectors = json.loads(VECTORS.read_bytes())
    assert len({vector["test"] for vector in vectors}) == RESULTS, len(vectors)
    for vector in vectors:
        if "boolean" in vector:
            for kind in BOOLEAN:
                read = Result.parse(io.BytesIO(service.query(vector["query"], kind)), content_type=kind)
                assert read.askAnswer is vector["boolean"], (vector["test"], kind)
            continue
        found = in_each(service, vector["query"])[vector["media_type"]]
        assert found[1] and by_value(found) == by_value(expected(vector)), (vector["test"], found)
    given = " ".join(f"({at} {written(term)})" for at, term in enumerate(TERMS))
    query = f"SELECT ?at ?term WHERE {{ VALUES (?at ?term) {{ {given} }} }} ORDER BY ?at"
    found = in_each(service, query)[JSON]
    assert found == (["at", "term"], [[Literal(at), term] for at, term in enumerate(TERMS)]), found


def main() -> None:
    """One agent learns and asks; another, who sees nothing of it, and somebody without a key, too."""
    assert len({asked.name for asked in TESTS}) == READING, len(TESTS)
    with house() as owner:
        keys = {name: owner.agent(name) for name in ("scout", "other")}
        with owner.served(free_port()) as url:
            base = url.removesuffix("/mcp")
            scout = Service(base, keys["scout"])
            for number, address in enumerate(DATA):
                source = {"type": "web", "ref": address}
                scout.tool("memory_learn", content=f"number {number}", source=source, scope="private", topic="tea")
            scout.tool("memory_learn", content=AWKWARD, source={"type": "web", "ref": "urn:x:y"}, scope="private")
            protocol(scout)
            formats(scout)
            results(scout)
            nothing = Service(base, keys["other"]).query("ASK { ?s ?p ?o }", "application/sparql-results+json")
            assert json.loads(nothing)["boolean"] is False, nothing
            for key in (None, "oapk_none"):
                for asked in TESTS:
                    status, _, body = Service(base, key).asked(asked)
                    assert status == (405 if asked.method == "PUT" else 401), (asked.name, status, body)
        given = owner.run("audit", "injected", "--agent", "scout")
        assert any(answer["tool"] == "sparql" for answer in given["answers"]), given
        owner.run("audit", "verify")
    print(f"SPARQL 1.1 Protocol: {len(TESTS)} of {READING} tests that only read; {RESULTS} tests of result formats")
    print("seven formats, as rdflib reads them")


if __name__ == "__main__":
    main()
