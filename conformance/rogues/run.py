#!/usr/bin/env python3
"""Builds the gateway with one fault at a time (faults.toml) and runs the probes against it.

    conformance/rogues/run.py [--list] [PART OF A NAME]

Works on a copy under target/rogues. Every fault costs a build of half a minute or so; the first one builds everything. Exit status
1 when a fault is not caught by the probe that is meant for it, or does not build.
"""

import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "target" / "rogues" / "copy"
# A gateway without a log, and one with a log.
TESTS = ["the_honest_gateway_fails_no_probe", "a_gateway_with_a_log_passes"]
# Of the workspace, as `mutants.py` builds it: what both need of others is built once.
TEST = ["cargo", "test", "--locked", "--workspace", "--test", "probes", "--", *TESTS]
TARGET = os.environ.get("CARGO_TARGET_DIR", str(COPY.parent / "target"))


def copy(besides=()):
    """The tracked files, as they are now. Files that did not change keep their times, so that little is built anew."""
    for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines():
        source, target = ROOT / name, COPY / name
        if name in besides or not source.is_file():
            continue
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def put_in(fault):
    """Edits the copy; the texts as they were."""
    before = {}
    for edit in [fault, *fault.get("also", [])]:
        path = COPY / edit["file"]
        text = path.read_text()
        before.setdefault(path, text)
        assert text.count(edit["was"]) == 1, f"{fault['name']}: {edit['file']} has changed"
        path.write_text(text.replace(edit["was"], edit["is"]))
    return before


def probed():
    """The ids of the probes that fail; None when there is no build."""
    env = {**os.environ, "CARGO_TARGET_DIR": TARGET, "OAP_PROBE_SEEDS": "1", "RUST_BACKTRACE": "0"}
    run = subprocess.run(TEST, cwd=COPY, env=env, text=True, capture_output=True)
    if f"running {len(TESTS)} tests" not in run.stdout:
        print(run.stderr[-3000:], file=sys.stderr)
        return None
    return {line.split()[1] for line in run.stdout.splitlines() if line.startswith("FAILED ")}


def main():
    arguments = sys.argv[1:]
    faults = tomllib.loads((ROOT / "conformance/rogues/faults.toml").read_text())["fault"]
    wanted = [a for a in arguments if not a.startswith("--")]
    faults = [fault for fault in faults if all(part in fault["name"] for part in wanted)]
    if "--list" in arguments:
        for fault in faults:
            print(f"{fault['name']:<70}{fault['meant']}")
        return 0
    copy()
    failed = probed()
    if failed is None or failed:
        print(f"without a fault: {failed}", file=sys.stderr)
        return 1
    missed = 0
    for fault in faults:
        started = time.monotonic()
        before = put_in(fault)
        failed = probed()
        for path, text in before.items():
            path.write_text(text)
        caught = failed is not None and fault["meant"] in failed
        missed += not caught
        others = ", ".join(sorted((failed or set()) - {fault["meant"]}))
        verdict = "no build" if failed is None else "caught" if caught else "MISSED"
        print(f"{verdict:<9}{fault['name']:<70}{fault['meant']:<32}{time.monotonic() - started:4.0f} s  {others}", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
