#!/usr/bin/env python3
"""Puts faults into the gateway (faults.toml) and runs the probes against it, one fault at a time.

    conformance/rogues/run.py [--list] [--switched] [PART OF A NAME]

Works on a copy under target/rogues. Nearly all faults are put in at once, each behind a switch that an environment variable turns on: the body of the
function that it changes stands there twice. So one build serves for them. The few that change what no switch can (an attribute, a constant, a
`const fn`, what type of iterator a function returns) are put in together in a second build, which `--switched` leaves out: what a probe says tells
them apart. CARGO_TARGET_DIR=target takes the dependencies that the tests of the workspace were built with. Exit status 1 when a gateway with a fault passes the probe that is meant for it, or does not build.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "target" / "rogues" / "copy"
TARGET = os.environ.get("CARGO_TARGET_DIR", str(COPY.parent / "target"))
LIBRARY = "crates/identity/src/lib.rs"
SWITCH = """
/// Whether a fault is on: the one that OAP_FAULT numbers.
#[doc(hidden)]
#[must_use]
pub fn fault(number: u32) -> bool {
    static ON: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *ON.get_or_init(|| std::env::var("OAP_FAULT").ok().and_then(|n| n.parse().ok()).unwrap_or(0)) == number
}
"""
# A gateway without a log, and one with a log.
TESTS = ["the_honest_gateway_fails_no_probe", "a_gateway_with_a_log_passes"]
OF_LOGS = ["own-log", "witnessed-receipts"]
# How a function begins, as rustfmt writes it.
FUNCTION = re.compile(r"^( *)(?:pub(?:\([a-z: ]+\))? )?(const )?(?:async )?fn \w", re.M)


def copy(besides=()):
    """The tracked files, as they are now. Files that did not change keep their times, so that little is built anew."""
    for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines():
        source, target = ROOT / name, COPY / name
        if name in besides or not source.is_file():
            continue
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def write(texts):
    """Writes files of the copy; what is as it was keeps its time."""
    for name, text in texts.items():
        path = COPY / name
        if not path.is_file() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def edits(fault):
    return [fault, *fault.get("also", [])]


def put_in(fault, texts):
    """The files that a fault changes, with it; they begin as in `texts` or as they are."""
    changed = dict(texts)
    for edit in edits(fault):
        text = changed.setdefault(edit["file"], (ROOT / edit["file"]).read_text())
        assert text.count(edit["was"]) == 1, f"{fault['name']}: {edit['file']} has changed"
        changed[edit["file"]] = text.replace(edit["was"], edit["is"])
    return changed


def body(text, place):
    """The body of the function around a place: where it begins and ends, within its braces. None where a switch cannot be asked."""
    around = None
    for found in FUNCTION.finditer(text, 0, place):
        end = text.find(f"\n{found[1]}}}", found.start())
        begin = re.compile(r"\{$", re.M).search(text, found.end())
        if end >= place and begin and begin.end() <= place:
            around = None if found[2] else (begin.end(), end + 1)
    return around


def switched(faults):
    """The files with every fault behind its switch; the numbers of those that are."""
    bodies, added, numbers = defaultdict(lambda: defaultdict(list)), defaultdict(list), []
    for number, fault in faults.items():
        found, more = [], []
        for edit in edits(fault):
            text = (ROOT / edit["file"]).read_text()
            assert text.count(edit["was"]) == 1, f"{fault['name']}: {edit['file']} has changed"
            same = len(os.path.commonprefix([edit["was"], edit["is"]]))
            where = body(text, text.index(edit["was"]) + same)
            if where:
                found.append((edit, where))
            elif edit["is"].startswith(edit["was"]):
                # What is only added does nothing where nobody asks for it.
                more.append(edit)
            else:
                break
        else:
            numbers.append(number)
            for edit in more:
                added[edit["file"]].append(edit)
            for edit, where in found:
                bodies[edit["file"]][where].append((number, edit))
    texts = {}
    for file in {*bodies, *added}:
        whole = (ROOT / file).read_text()
        text, last = "", 0
        switch = "crate::fault" if file.startswith("crates/identity/") else "oap_identity::fault"
        for (begin, end), changes in sorted(bodies[file].items()):
            right = whole[begin:end]
            wrong = defaultdict(lambda right=right: right)
            for number, edit in changes:
                # Of what changes the first line of a body, or what stands before it, the rest counts.
                was, is_ = edit["was"], edit["is"]
                if was not in wrong[number]:
                    same = len(os.path.commonprefix([was, is_]))
                    assert right.startswith(was[same:]), f"{file}: {was}"
                    wrong[number] = is_[same:] + right[len(was) - same :]
                else:
                    wrong[number] = wrong[number].replace(was, is_)
            text += whole[last:begin] + " "
            for number, other in wrong.items():
                text += f"if {switch}({number}) {{{other}}} else "
            text += "{" + right + "}\n"
            last = end
        text += whole[last:]
        for edit in added[file]:
            assert text.count(edit["was"]) == 1, f"{file}: {edit['was']}"
            text = text.replace(edit["was"], edit["is"])
        texts[file] = text
    texts[LIBRARY] = texts.get(LIBRARY, (ROOT / LIBRARY).read_text()) + SWITCH
    return texts, numbers


def built():
    """The program of the probes; None where there is none, and what the compiler says."""
    command = ["cargo", "test", "--locked", "--workspace", "--test", "probes", "--no-run", "--message-format=json"]
    run = subprocess.run(command, cwd=COPY, env={**os.environ, "CARGO_TARGET_DIR": TARGET}, text=True, capture_output=True)
    said = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    programs = [one["executable"] for one in said if one.get("executable") and one["profile"]["test"]]
    errors = [one["message"] for one in said if one.get("reason") == "compiler-message" and one["message"]["level"] == "error"]
    return (programs[0] if run.returncode == 0 and programs else None), errors or [{"rendered": run.stderr, "spans": []}]


def blamed(errors):
    """The numbers of the faults that do not compile, as far as errors say."""
    found = set()
    for span in [span for error in errors for span in error["spans"] if span["is_primary"]]:
        before = (COPY / span["file_name"]).read_bytes()[: span["byte_start"]].decode()
        numbers = re.findall(r"::fault\((\d+)\)", before)
        found |= {int(number) for number in numbers[-1:]}
    return found


def failed(program, number, only):
    """The probes of one seed that fail or are skipped, which is no pass either; None where the program does not come to an end."""
    test = TESTS[1] if only in OF_LOGS else TESTS[0]
    more = {"OAP_FAULT": str(number), "OAP_PROBE_SEEDS": "1", "OAP_PROBE_ONLY": only, "RUST_BACKTRACE": "0"}
    try:
        run = subprocess.run([program, "--exact", test], cwd=COPY / "conformance", env={**os.environ, **more}, text=True, capture_output=True, timeout=300)
    except subprocess.TimeoutExpired:
        return None
    if run.returncode == 0:
        return {"": "passed"}
    return {name: how for how, name in re.findall(r"(FAILED|SKIPPED) +([a-z][a-z-]+)", run.stdout)}


def main():
    arguments = sys.argv[1:]
    every = tomllib.loads((ROOT / "conformance/rogues/faults.toml").read_text())["fault"]
    wanted = [a for a in arguments if not a.startswith("--")]
    faults = {number: fault for number, fault in enumerate(every, 1) if all(part in fault["name"] for part in wanted)}
    if "--list" in arguments:
        for fault in faults.values():
            print(f"{fault['name']:<70}{fault['meant']}")
        return 0
    texts, numbers = switched(faults)
    right = {name: (ROOT / name).read_text() for name in texts}
    copy(besides=texts)
    write(texts)
    program, errors = built()
    missed, alone = [], set()
    while not program:
        # Of a function that returns some iterator, say, both bodies would have to return the same one.
        worse = blamed(errors) & set(numbers)
        if not worse:
            print("".join(error["rendered"] for error in errors), file=sys.stderr)
            return 1
        alone |= worse
        texts, numbers = switched({number: fault for number, fault in faults.items() if number not in alone})
        write(right | texts)
        program, errors = built()

    def asked(program, number):
        fault, started = faults[number], time.monotonic()
        found = failed(program, number, fault["meant"])
        how = None if found is None else found.get(fault["meant"], "passed")
        verdict = {None: "no end", "FAILED": "caught", "SKIPPED": "skipped" if fault.get("skips") else "MISSED"}.get(how, "MISSED")
        if verdict not in ("caught", "skipped"):
            missed.append(number)
        print(f"{verdict:<9}{fault['name']:<70}{fault['meant']:<32}{time.monotonic() - started:4.0f} s", flush=True)

    wrong = {meant for meant in sorted({fault["meant"] for fault in faults.values()}) if failed(program, 0, meant) != {"": "passed"}}
    if wrong:
        print(f"without a fault: {wrong}", file=sys.stderr)
        return 1
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda number: asked(program, number), numbers))
    rest = [] if "--switched" in arguments else [number for number in faults if number not in numbers]
    if rest:
        texts = {}
        for number in rest:
            texts = put_in(faults[number], texts)
        write(right | texts)
        program, errors = built()
        if not program:
            print("".join(error["rendered"] for error in errors), file=sys.stderr)
            return 1
        for number in rest:
            asked(program, number)
    of = len(numbers) + len(rest)
    print(f"{of - len(missed)} of {of} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
