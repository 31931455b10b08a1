"""MCP's own conformance suite (npm) against the real program over HTTP. `$OAP_MEMORY` is the program.

The suite is written for a server that was made for it, with tools such as `test_simple_text`. Each of its server scenarios stands
below: in OURS what a memory server has to do, in OTHERS the rest, with why not. All of the specification are run, in each version of
the protocol that they are of; of OTHERS only this is asked, that each message of ours is valid by the specification's schema. A version
of the suite with another list fails here until somebody has said which the new ones are. The suite sends no credential, and MCP here
needs an agent's key: a proxy puts it in and changes nothing else, so that what is done about hosts and origins is the gateway's doing.
"""

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from house import free_port, house, node, npm_package

PACKAGE = ("@modelcontextprotocol/conformance", "0.2.0-alpha.12")
VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
SECONDS = 180
"""For all scenarios of a version."""
HEAD = 65_536
"""Bytes of a request's head, at most."""

OURS = {
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "sep-2164-resource-not-found",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "server-stateless",
    "input-required-result-unsupported-methods",
}
# Of 2026-07-28 alone it is a scenario for us: before, it opens sessions, and has nothing to say of a server without.
STREAMS = "server-sse-multiple-streams"

TOOL = "calls a tool of the suite's own server"
RESOURCE = "reads a resource of the suite's own server"
PROMPT = "gets a prompt of the suite's own server"
OTHERS = {
    **dict.fromkeys(
        (
            "tools-call-simple-text tools-call-image tools-call-audio tools-call-embedded-resource tools-call-mixed-content"
            " tools-call-with-logging tools-call-error tools-call-with-progress tools-call-sampling tools-call-elicitation"
            " json-schema-2020-12 elicitation-sep1034-defaults elicitation-sep1330-enums"
        ).split(),
        TOOL,
    ),
    **{
        f"input-required-result-{name}": TOOL
        for name in (
            "basic-elicitation basic-sampling basic-list-roots request-state multiple-input-requests multi-round"
            " missing-input-response result-type tampered-state capability-check ignore-extra-params validate-input"
        ).split()
    },
    **dict.fromkeys(("resources-read-text", "resources-read-binary", "resources-templates-read"), RESOURCE),
    **dict.fromkeys(
        (
            "prompts-get-simple prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image"
            " input-required-result-non-tool-request"
        ).split(),
        PROMPT,
    ),
    "completion-complete": "completes what a prompt of the suite's own server takes; we offer no `completions`",
    "logging-set-level": "we offer no `logging`: logs carry ids, and are the owner's",
    "resources-subscribe": "we offer no subscriptions",
    "resources-unsubscribe": "we offer no subscriptions",
    "server-session-lifecycle": "a server that opens no session, as ours, has nothing to do here",
    "server-sse-polling": "needs a session, and a stream that breaks off",
    "http-custom-header-server-validation": "needs a tool with `x-mcp-header`; ours have none",
}
EXTENSIONS = re.compile(r"(tasks|sep-2640-skills)-")
"""Scenarios of extensions that we do not declare."""

NOT_TESTABLE = {
    "sep-2575-server-rejects-undeclared-capability": "test_missing_capability",
    "sep-2575-missing-capability-http-400": "test_missing_capability",
    "sep-2575-http-server-no-independent-requests-on-stream": "test_streaming_elicitation",
    "sep-2575-server-no-log-without-loglevel": "test_logging_tool",
}
"""Checks of OURS that the suite itself calls not testable, for want of this tool."""
DIFFERS = {
    "localhost-host-valid-accepted": "an Origin is accepted where the owner listed it (`mcp_origins`), and our own is not: no page of ours is an agent",
}
"""Checks of OURS that fail, and are meant to. One that passes is to be taken out."""


async def with_key(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes) -> None:
    """Requests as they come, with an agent's key in those that have no credential."""
    try:
        while True:
            line, _, fields = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")
            known = dict(one.lower().split(b":", 1) for one in fields.split(b"\r\n") if one)
            if b"authorization" not in known:
                fields = b"Authorization: Bearer " + key + b"\r\n" + fields
            assert b"transfer-encoding" not in known, "the suite sends bodies with their length"
            body = await reader.readexactly(int(known.get(b"content-length", 0)))
            writer.write(line + b"\r\n" + fields + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def as_it_is(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers."""
    try:
        while data := await reader.read(HEAD):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def proxied(port: int, gateway: int, key: str) -> AsyncIterator[None]:
    """A way to the gateway that has an agent's key."""

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", gateway)
        await asyncio.gather(with_key(reader, back, key.encode()), as_it_is(there, writer))

    async with await asyncio.start_server(meet, "127.0.0.1", port, limit=HEAD):
        yield


def judge(version: str, scenario: str, checks: list[dict], rows: list[str]) -> list[str]:
    """What is wrong with the outcome of a scenario."""
    ours = scenario in OURS or (scenario == STREAMS and version == VERSIONS[-1])
    wrong, passed, known = [], 0, 0
    for check in checks:
        name, status = check["id"], check["status"]
        failed = status == "FAILURE"
        if ours and status == "WARNING":
            rows.append(f"  {version}  {scenario}: should, {name}: {check.get('errorMessage')}")
        if name in DIFFERS and not failed:
            wrong.append(f"{name} passes: take it out of DIFFERS")
        elif failed and name in NOT_TESTABLE and check.get("details", {}).get("untestable"):
            known += 1
        elif failed and name in DIFFERS:
            known += 1
        elif failed and (ours or name == "wire-schema-valid"):
            wrong.append(f"{name}: {status}, {check.get('errorMessage')}")
        elif name != "wire-schema-valid":
            passed += status == "SUCCESS"
    if ours:
        rows.append(f"  {version}  {scenario}: {passed} passed" + (f", {known} known not to" if known else ""))
        if not passed:
            wrong.append("nothing was checked")
    return [f"{version} {scenario}: {one}" for one in wrong]


async def suite(*arguments: str) -> str:
    """A command of the suite; what it prints. Its status is not asked: most of its scenarios are not for us."""
    program = npm_package(*PACKAGE) / "dist" / "index.js"
    command = [node(), str(program), *arguments]
    run = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said, _ = await asyncio.wait_for(run.communicate(), SECONDS)
    finally:
        if run.returncode is None:
            run.kill()
            await run.wait()
    return said.decode()


async def main() -> int:
    """Every scenario of the list, in every version that it is of."""
    wrong: list[str] = []
    rows: list[str] = []
    listed = dict(re.findall(r"^  - (\S+) \[(.*)\]", await suite("list", "--server"), re.MULTILINE))
    known = OURS | OTHERS.keys() | {STREAMS}
    for scenario in known ^ {name for name in listed if not EXTENSIONS.match(name)}:
        wrong.append(f"{scenario} is {'not there any more' if scenario in known else 'new: ours, or why not?'}")
    with house() as home, tempfile.TemporaryDirectory() as folder:
        port, gateway = free_port(), free_port()
        key = home.agent("scout")
        with home.served(gateway, "--origin", f"http://localhost:{port}"):
            async with proxied(port, gateway, key):
                for version in VERSIONS:
                    out = Path(folder) / version
                    all_of_it = ("--suite", "all", "--spec-version", version, "--output-dir", str(out))
                    await suite("server", "--url", f"http://localhost:{port}/mcp", *all_of_it)
                    run = {}
                    for file in sorted(out.glob("*/checks.json")):
                        name = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[-0-9]+Z", file.parent.name)
                        run[name[1]] = json.loads(file.read_text())
                    asked = {scenario for scenario in known if version in listed.get(scenario, "").split(",")}
                    wrong += [f"{version} {scenario}: was not run" for scenario in asked - run.keys()]
                    for scenario, checks in run.items():
                        wrong += judge(version, scenario, checks, rows)
    print("\n".join(rows))
    print(f"not asked: {len(OTHERS)} scenarios of the suite's own server or of what we do not offer; by design other:")
    print("\n".join(f"  {name}: {why}" for name, why in DIFFERS.items()))
    for one in wrong:
        print(one, file=sys.stderr)
    print(f"{PACKAGE[0]} {PACKAGE[1]}: protocol {', '.join(VERSIONS)}, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
