"""The command line: `verify`, `query`, `key`.

Exit status: 0 it holds, or done; 1 nothing was found out; 2 wrong usage; 3 refused by a gateway; 4 a proof does not
hold.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .canonical import Json, parse
from .client import Client
from .documents import Documents, document
from .errors import GatewayError, OapError, Refused, Unreachable, UsageError
from .flow import Flow, Request, Response
from .keyfile import PrivateKey
from .report import Report
from .resolving import with_documents
from .verifying import MAX_FILE, verify
from .wire import Wire

DONE, FAILED, USAGE, REFUSED, DOES_NOT_HOLD = range(5)


def _read(path: str, limit: int = MAX_FILE) -> bytes:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(limit + 1)
    except OSError as wrong:
        raise UsageError(f"{path}: cannot be read: {wrong.strerror}") from None
    if len(data) > limit:
        raise UsageError(f"{path}: must have {limit} bytes at most")
    return data


def _json(path: str) -> Json:
    try:
        return parse(_read(path))
    except Refused as wrong:
        raise UsageError(f"{path}: {wrong.must}") from None


def _documents(paths: Sequence[str]) -> Documents:
    known = Documents()
    for path in paths:
        try:
            known.add(document(_json(path)))
        except Refused as wrong:
            raise UsageError(f"{path}: {wrong.field or '/'} {wrong.must}") from None
    return known


def _say(arguments: argparse.Namespace, result: dict[str, Any], lines: Sequence[str]) -> None:
    if arguments.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        for line in lines:
            # Foreign text must not steer a terminal.
            print("".join(c if c.isprintable() else " " for c in line))


def _of_report(report: Report) -> tuple[dict[str, Any], list[str]]:
    unchecked = [{"id": one.name, "what": one.why} for one in report.unchecked]
    result = {"verified": True, "what": report.kind.replace(" ", "_"), **report.facts, "unchecked": unchecked}
    said = [f"{report.kind}: it holds"]
    said += [f"  {name}: {value}" for name, value in report.facts.items() if value not in (None, [])]
    return result, said + [f"not checked: {one.why}" for one in report.unchecked]


class _Caller:
    """Runs the flows of a command, and makes connections only where one is asked for."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._wire: Wire | None = None

    def _send(self, request: Request) -> Response:
        if self._wire is None:
            self._wire = Wire(ca_file=self._arguments.trust_ca, local=self._arguments.allow_local_dids)
        return self._wire.send(request)

    def run(self, flow: Flow[Report]) -> Report:
        try:
            request = next(flow)
            while True:
                try:
                    response = self._send(request)
                except Unreachable as wrong:
                    request = flow.throw(wrong)
                else:
                    request = flow.send(response)
        except StopIteration as end:
            report: Report = end.value
            return report
        finally:
            flow.close()


def _verify_one(arguments: argparse.Namespace, path: str, documents: Documents, caller: _Caller) -> int:
    data = _read(path)
    grant = None if arguments.grant is None else _json(arguments.grant)
    ancestors = [_json(one) for one in arguments.chain]
    listed = None if arguments.status_list is None else _read(arguments.status_list).decode("ascii", "replace").strip()

    def judge() -> Report:
        return verify(
            data,
            documents=documents,
            grant=grant,
            ancestors=ancestors,
            status_list=listed,
            trust_bundle=arguments.trust_bundle,
        )

    try:
        result, said = _of_report(caller.run(with_documents(documents, judge, local=arguments.allow_local_dids)))
    except Refused as wrong:
        missing = sorted(documents.missing)
        result = {"verified": False, "check": wrong.check, "field": wrong.field, "why": wrong.must}
        said = [f"does not hold: {wrong}"]
        if missing:
            result["no_document"] = missing
            said.append("no DID document of " + ", ".join(missing))
        _say(arguments, {"file": path, **result}, [f"{path}: {line}" for line in said])
        return FAILED if missing else DOES_NOT_HOLD
    _say(arguments, {"file": path, **result}, [f"{path}: {said[0]}", *said[1:]])
    return DONE


def _verify(arguments: argparse.Namespace) -> int:
    documents, caller, worst = _documents(arguments.did_document), _Caller(arguments), DONE
    for path in arguments.files:
        worst = max(worst, _verify_one(arguments, path, documents, caller))
    return worst


def _query(arguments: argparse.Namespace) -> int:
    client = Client(
        _json(arguments.grant),
        PrivateKey.load(arguments.key),
        ancestors=[_json(path) for path in arguments.chain],
        documents=_documents(arguments.did_document),
        gateway=arguments.gateway,
        ca_file=arguments.trust_ca,
        allow_local_dids=arguments.allow_local_dids,
    )
    with client:
        if arguments.export is not None:
            bundle = client.export()
            Path(arguments.export).write_bytes(bundle.data)
            _say(arguments, _of_report(bundle.report)[0], [f"{len(bundle.items)} items in {arguments.export}"])
            return DONE
        answer = client.query(
            " ".join(arguments.text),
            max_results=arguments.max_results,
            kinds=arguments.kind or None,
            labels_any=arguments.label or None,
            purpose=arguments.purpose,
            cursor=arguments.cursor,
        )
    if arguments.save is not None:
        Path(arguments.save).write_text(json.dumps(answer.wire, ensure_ascii=False), encoding="utf-8")
    lines = []
    for item in answer.items:
        content = item.get("content", {})
        shown = content.get("text") or json.dumps(content.get("structured", {}), ensure_ascii=False)
        lines.append(f"{item['item_id']}  {item.get('kind', '')}  {item['relevance']}  {item['epistemic']}  {shown}")
    if answer.next_cursor is not None:
        lines.append(f"there is more: --cursor {answer.next_cursor}")
    _say(arguments, {**answer.wire, "unchecked": _of_report(answer.report)[0]["unchecked"]}, lines or ["nothing"])
    return DONE


def _key(arguments: argparse.Namespace) -> int:
    key = PrivateKey.new()
    key.save(arguments.out)
    _say(arguments, {"did": key.did}, [key.did])
    return DONE


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON")
    network = argparse.ArgumentParser(add_help=False)
    network.add_argument("--trust-ca", metavar="FILE", help="a further authority (PEM) that connections trust")
    network.add_argument(
        "--allow-local-dids", action="store_true", help="private addresses and plain http on loopback, for development"
    )
    network.add_argument(
        "--did-document",
        metavar="FILE",
        action="append",
        default=[],
        help="a DID document, instead of the published one",
    )
    network.add_argument(
        "--chain", metavar="FILE", action="append", default=[], help="the grants above a delegated one, first one first"
    )
    parser = argparse.ArgumentParser(prog="oap_memory", description="OAP memory exchange (RFC 0010)")
    commands = parser.add_subparsers(required=True)

    one = commands.add_parser(
        "verify", parents=[common, network], help="check documents, offline with their DID documents"
    )
    one.add_argument("files", nargs="+", metavar="FILE", help="a document; - is standard input")
    one.add_argument("--grant", metavar="FILE", help="of answers: the grant that it was given under")
    one.add_argument("--status-list", metavar="FILE", help="of grants, and answers with --grant: is it revoked?")
    one.add_argument("--trust-bundle", action="store_true", help="of bundles: believe the DID documents that it brings")
    one.set_defaults(run=_verify)

    one = commands.add_parser("query", parents=[common, network], help="ask under a grant")
    one.add_argument("--grant", metavar="FILE", required=True, help="the grant, as its granter handed it over")
    one.add_argument("--key", metavar="FILE", default="my.key", help="your key, a private JWK [default: my.key]")
    one.add_argument("--gateway", metavar="URL", help="where the gateway is, if the grant does not lead there")
    one.add_argument("--max-results", metavar="N", type=int, help="1 to 100 [default: 20]")
    one.add_argument("--kind", action="append", help="only items of this kind")
    one.add_argument("--label", action="append", help="only items with one of these labels")
    one.add_argument("--purpose", metavar="CODE", help="one of the codes that the grant names")
    one.add_argument("--cursor", help="go on where an answer ended")
    one.add_argument("--save", metavar="FILE", help="keep the answer, for verify")
    one.add_argument("--export", metavar="FILE", help="fetch all that the grant shows as a bundle instead")
    one.add_argument("text", nargs="*", help="the question; without one the newest items are listed")
    one.set_defaults(run=_query)

    one = commands.add_parser("key", parents=[common], help="make a did:key to ask with; prints the DID")
    one.add_argument("--out", metavar="FILE", required=True, help="the file for the key; never overwritten")
    one.set_defaults(run=_key)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; the exit status.

    >>> main(["verify", "/nowhere"])
    1
    """
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        return status
    except GatewayError as wrong:
        return _failed(arguments, str(wrong), REFUSED)
    except Refused as wrong:
        return _failed(arguments, f"does not hold: {wrong}", DOES_NOT_HOLD)
    except (OapError, OSError) as wrong:
        return _failed(arguments, str(wrong), FAILED)
    except KeyboardInterrupt:
        return FAILED


def _failed(arguments: argparse.Namespace, why: str, status: int) -> int:
    shown = "".join(c if c.isprintable() else " " for c in why)
    print(json.dumps({"error": shown, "status": status}) if arguments.json else f"oap_memory: {shown}", file=sys.stderr)
    return status
