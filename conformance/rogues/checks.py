#!/usr/bin/env python3
"""Removes the verifier's checks one by one and runs the portable cases (grants/tests/portable) without each.

    conformance/rogues/checks.py [--list | --every N]

`--every N` takes every Nth check alone, for a first look. `.ci/run` takes them all.

Works on a copy under target/rogues. There every check becomes one that an environment variable turns off, so that one build
serves for all of them; the product has no such switch (docs/decisions.md). A check is

- a condition in front of `return Err(...)`, or of the value that becomes the error (`Some(Refused::...)`, `Some("...")`),
- a statement `check(...)?;` that has no other effect,
- a condition in front of `Ok(())` with an error otherwise, or one of EXPRESSIONS.

Exit status 1 when no case's verdict changes without some check that EQUIVALENT does not name, or when that list is out of date.
"""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from run import COPY, ROOT, copy

FILES = """crates/memory/src/evidence/item.rs crates/memory/src/evidence/answer.rs crates/memory/src/evidence/mod.rs crates/memory/src/chain.rs crates/memory/src/vouch.rs
crates/memory/src/receipt/verified.rs crates/memory/src/receipt/chain.rs crates/memory/src/receipt/content.rs crates/memory/src/form.rs crates/memory/src/sd_jwt.rs crates/memory/src/commitment.rs crates/memory/src/deletion.rs crates/memory/src/bundle.rs
crates/memory/src/filter.rs grants/src/evidence.rs grants/src/bundle.rs grants/src/grant.rs grants/src/limits.rs grants/src/attenuate.rs grants/src/status.rs
crates/identity/src/signed.rs crates/identity/src/detached.rs crates/identity/src/unverified.rs crates/identity/src/document.rs""".split()
SWITCH = """
/// Whether a check is made: all but the one that OAP_REMOVED numbers.
#[doc(hidden)]
#[must_use]
pub fn on(check: u32) -> bool {
    static REMOVED: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *REMOVED.get_or_init(|| std::env::var("OAP_REMOVED").ok().and_then(|n| n.parse().ok()).unwrap_or(0)) != check
}
"""
# Checks of another shape: file, text, the text with ON for whether the check is made.
EXPRESSIONS = [
    (
        "crates/identity/src/detached.rs",
        "key.verify(bytes, &value, signed_at)?;",
        "if ON { key.verify(bytes, &value, signed_at)? }",
    ),
    (
        "crates/identity/src/unverified.rs",
        "signature.verify(key, signed_at)?;",
        "if ON { signature.verify(key, signed_at)? }",
    ),
    (
        "crates/memory/src/chain.rs",
        "next.ok_or(ChainError::State(index, link.event, status))?",
        "next.or((!ON).then_some(status)).ok_or(ChainError::State(index, link.event, status))?",
    ),
    (
        "crates/memory/src/evidence/item.rs",
        "Some(missing) => Err(EvidenceError::Visible(quoted(missing))),\n        None =>",
        "Some(missing) if ON => Err(EvidenceError::Visible(quoted(missing))),\n        _ =>",
    ),
    (
        "crates/identity/src/signed.rs",
        "Ok(key.public().verify(input.as_bytes(), &self.signature)?)",
        "if ON { Ok(key.public().verify(input.as_bytes(), &self.signature)?) } else { Ok(()) }",
    ),
    (
        "crates/memory/src/vouch.rs",
        "key.retired_at().filter(|at| *at <= link.at)",
        "key.retired_at().filter(|at| ON && *at <= link.at)",
    ),
    (
        "crates/memory/src/vouch.rs",
        "link.event == Event::Reseal && key.revoked_at().is_none()",
        "(link.event == Event::Reseal || !ON) && key.revoked_at().is_none()",
    ),
    (
        "crates/identity/src/document.rs",
        "Ok(self.public.verify(message, signature)?)",
        "if ON { Ok(self.public.verify(message, signature)?) } else { Ok(()) }",
    ),
]
# Functions that no verifier calls, by file and name.
ELSEWHERE = re.compile(r":(place|placed|sign\w*|conceal|choose|publish|explain|is_revoked|read_at|payload|check_profile)$|(limits.rs:check(_delegated)?|document.rs:(parse|of_value))$")
# Checks that others stand behind, by file and condition, each with the reason.
ITEM, CHAIN, BOUND = "crates/memory/src/evidence/item.rs", "crates/memory/src/chain.rs", "a bound of ours on size, no rule of the protocol: a case would be megabytes"
BOUND_TEST = "gateway/tests/limits and the tests beside the code hold it"
EQUIVALENT = {
    (ITEM, 'members.get("item_id").is_none_or(|id| *id != item_id.to_string())'): "the visible item is compared with its claims, which name it; without claims nothing is proved",
    (ITEM, "link.item_id != place.item_id"): "the visible item_id is compared with the chain and with the claims",
    ("crates/memory/src/evidence/answer.rs", "envelope.items.len() > usize::from(MAX_RESULTS)"): f"{BOUND}; {BOUND_TEST}",
    (CHAIN, "links.len() > MAX_LINKS"): f"{BOUND}; {BOUND_TEST}",
    ("crates/memory/src/receipt/verified.rs", "receipt.signatures.len() > MAX_SIGNATURES"): "of three signatures one is a stranger's, or one DID signs twice",
    ("crates/memory/src/receipt/verified.rs", 'signature.alg != "EdDSA"'): "the check of the signature itself refuses it, too",
    ("crates/memory/src/commitment.rs", "Hash::of(jwt.as_bytes()) != self.commitment"): "no verifier's: what a stored row makes is compared with the commitment that the row names; gateway/src/state/version_row.rs tests it",
    ("crates/memory/src/sd_jwt.rs", "jwt.split('.').count() != 3 || rest.split_terminator('~').count() > MAX_DISCLOSURES"): "the JWT's own parser refuses other than three parts; the rest is a bound of ours on size",
    ("crates/memory/src/commitment.rs", "spans(&presentation)?;"): "no case has it yet: crates/memory/tests/commitment.rs holds it",
    ("crates/memory/src/commitment.rs", '!members.is_empty() && members.contains_key("t") != is_segment(part.path().steps())'): "no case has it yet: crates/memory/tests/commitment.rs holds it",
    ("crates/memory/src/sd_jwt.rs", "!rest.is_empty() && !rest.ends_with('~')"): "the parser wants every part ended by a tilde",
    ("crates/memory/src/sd_jwt.rs", "!seen.insert(encoded)"): "the second one stands at a digest that was taken",
    ("crates/memory/src/bundle.rs", "json::canonical(&value)? != bytes"): "what the line's members write is compared with its bytes too",
    ("crates/memory/src/sd_jwt.rs", 'payload.get("_sd_alg").is_none_or(|algorithm| algorithm != "sha-256")'): "ssi-sd-jwt refuses what it cannot compute",
    ("crates/memory/src/bundle.rs", "bytes.len() > MAX_LINE"): f"{BOUND}; {BOUND_TEST}",
    ("grants/src/evidence.rs", "ancestors.len() > usize::from(MAX_DEPTH)"): "each step must be less deep than the one before, which cannot go on that long",
    ("grants/src/bundle.rs", "ancestors.len() > usize::from(crate::limits::MAX_DEPTH)"): "each step must be less deep than the one before, which cannot go on that long",
    ("grants/src/bundle.rs", 'line.item["exportable"] == false'): "the grant's filter refuses it, too, where the grant came along",
    ("grants/src/bundle.rs", "late"): "created_at is not later than finished_at, and that is not in the future",
    ("grants/src/bundle.rs", "self.wrong > 0"): "whoever reads line by line was told at the line",
    ("grants/src/grant.rs", "kid.did() != signer.id()"): "the signer's document has no key of another DID",
    ("crates/identity/src/signed.rs", "*key.kid() != self.kid"): "callers look the key up by the name that the signature gives",
    ("crates/identity/src/signed.rs", "*key.kid() != self.kid()?"): "callers look the key up by the name that the signature gives",
    ("crates/identity/src/signed.rs", "token.len() > MAX_JWT"): f"{BOUND}; {BOUND_TEST}",
}


def opening(text, at):
    """The `{` that encloses a place, and where the condition in front of it begins; None where it is no condition."""
    depth = 0
    for brace in range(at - 1, -1, -1):
        depth += {"}": 1, "{": -1}.get(text[brace], 0)
        if depth < 0:
            break
    else:
        return None
    if text[brace + 1 : at].strip():
        return None
    depth = 0
    for start in range(brace - 1, 0, -1):
        depth += {")": 1, "]": 1, "}": 1, "(": -1, "[": -1, "{": -1}.get(text[start], 0)
        if depth < 0 or (depth == 0 and text[start] == ";"):
            return None
        if depth == 0 and re.match(r"\bif\s", text[start : start + 4]) and not text[start - 1].isalnum():
            return start + 3, brace
    return None


def guarded(condition, number):
    if re.match(r"\s*let\b", condition):
        return f"{condition.rstrip()} && oap_identity::on({number}) "
    return f"({condition.strip()}) && oap_identity::on({number}) "


def sites(name, text):
    """The edits of a file: (start, end, function of a number to the new text, the check as it stood)."""
    found = {}
    body = text.split("#[cfg(test)]")[0]
    for match in re.finditer(r"return Err\(|Some\(Refused::\w+\)|Some\(\"[^\"]+\"\)", body):
        place = opening(body, match.start())
        if place and "=>" not in body[slice(*place)]:
            start, end = place
            what = re.sub(r"\s+", " ", body[start:end]).strip()
            found[start] = (start, end, lambda n, c=body[start:end]: guarded(c, n), what)
    for match in re.finditer(r"(?<=[;{}]\n)( +)((?!let |return |[^(]*= )[\w:.<>]+(?:\([^;{}]*\)|\.\w+)*\([^;{}]*\)(?:\s*\.\w+\([^;{}]*\))*\?;)$", body, re.M):
        statement = match[2]
        if re.search(r"\b(write|read_to_end|put|push|extend|insert|place|collect)\w*\(|random|sign_", statement) and "end_chain" not in statement:
            continue
        start, end = match.start(2), match.end(2)
        what = re.sub(r"\s+", " ", statement)
        found[start] = (start, end, lambda n, s=statement: f"if oap_identity::on({n}) {{ {s} }}", what)
    for match in re.finditer(r"\bif ([^{};]+) \{\s*Ok\([^{};]*\)\s*\} else \{\s*Err\(", body):
        start, end = match.start(1), match.end(1)
        what = re.sub(r"\s+", " ", match[1])
        if what != "ok":
            found[start] = (start, end, lambda n, c=match[1]: f"({c}) || !oap_identity::on({n})", what)
    for match in re.finditer(r"\bif ([^{};]+) \{\s*Err\([^{};]*\)\s*\} else \{\s*Ok\(|\(\) if ([^;{}]*?) => Some\(", body):
        group = 1 if match[1] else 2
        start, end = match.span(group)
        what = re.sub(r"\s+", " ", match[group])
        found[start] = (start, end, lambda n, c=match[group]: guarded(c, n), what)
    for match in re.finditer(r"within\(((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*), (\"[\w.]+\")\)", body):
        start, end = match.start(1), match.end(1)
        found[start] = (start, end, lambda n, c=match[1]: f"({c}) || !oap_identity::on({n})", f"within {match[2]}")
    for file, was, becomes in EXPRESSIONS:
        if file == name:
            assert body.count(was) == 1, f"{file} has changed: {was}"
            start = body.index(was)
            change = lambda n, b=becomes: b.replace("ON", f"oap_identity::on({n})")
            found[start] = (start, start + len(was), change, re.sub(r"\s+", " ", was))
    kept = []
    for start, site in sorted(found.items()):
        functions = re.findall(r"^\s*(?:pub(?:\(\w+\))? )?(?:const )?fn (\w+)", body[:start], re.M)
        if not (functions and ELSEWHERE.search(f"{name}:{functions[-1]}")) and not (kept and start < kept[-1][1]):
            kept.append(site)
    return kept


def mutate():
    """Edits the copy; the checks by number."""
    checks = {}
    for name in FILES:
        path = COPY / name
        text = path.read_text()
        edits = []
        for start, end, change, what in sites(name, text):
            number = len(checks) + 1
            checks[number] = (name, what)
            new = change(number)
            # Within the crate that has the switch.
            edits.append((start, end, new.replace("oap_identity::on", "crate::on") if name.startswith("crates/identity/") else new))
        for start, end, new in reversed(edits):
            text = text[:start] + new + text[end:]
        path.write_text(text)
    library = COPY / "crates/identity/src/lib.rs"
    library.write_text(library.read_text() + SWITCH)
    return checks


def built(environment):
    # Of the whole workspace, so that what the project's own build has made of dependencies serves here.
    command = "cargo test --locked --no-run --workspace --test portable --message-format=short".split()
    run = subprocess.run(command, cwd=COPY, env=environment, text=True, capture_output=True)
    found = re.search(r"Executable .*\((.*)\)", run.stderr)
    if not found:
        print(run.stderr[-6000:], file=sys.stderr)
        sys.exit(1)
    return COPY / found[1] if not found[1].startswith("/") else Path(found[1])


def disagreements(program, number):
    environment = {**os.environ, "OAP_REMOVED": str(number), "RUST_BACKTRACE": "0"}
    run = subprocess.run([program, "--nocapture"], cwd=COPY / "grants", env=environment, text=True, capture_output=True)
    found = re.search(r"disagree: (\d+) verdicts, (\d+) reasons", run.stdout)
    return (int(found[1]), int(found[2])) if found else (1, 0)


def main():
    started = time.monotonic()
    copy()
    for name in [*FILES, "crates/identity/src/lib.rs"]:
        (COPY / name).write_text((ROOT / name).read_text())
    checks = mutate()
    if "--list" in sys.argv:
        for number, (name, what) in checks.items():
            print(f"{number:4} {name:<32} {what}")
        return 0
    target = os.environ.get("CARGO_TARGET_DIR", str(COPY.parent / "target"))
    program = built({**os.environ, "CARGO_TARGET_DIR": target})
    print(f"{len(checks)} checks, built in {time.monotonic() - started:.0f} s", flush=True)
    if disagreements(program, 0) != (0, 0):
        print("with all checks, the cases disagree", file=sys.stderr)
        return 1
    started = time.monotonic()
    if "--every" in sys.argv:
        every = int(sys.argv[sys.argv.index("--every") + 1])
        checks = {number: check for number, check in checks.items() if number % every == 1 % every}
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = dict(zip(checks, pool.map(lambda number: disagreements(program, number), checks)))
    unseen = 0
    for number, (name, what) in checks.items():
        verdicts, reasons = results[number]
        known = EQUIVALENT.get((name, what))
        if not verdicts:
            unseen += not known
            why = known or ("UNSEEN" if not reasons else f"another check refuses, {reasons} cases")
            print(f"{number:4} {name:<32} {what[:110]:<112}{why}")
        elif known:
            print(f"{number:4} {name:<32} {what[:110]:<112}is seen, and listed as equivalent")
            unseen += 1
    seen = sum(1 for verdicts, _ in results.values() if verdicts)
    print(f"{seen} of {len(checks)} checks removed change a verdict; {time.monotonic() - started:.0f} s")
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())
