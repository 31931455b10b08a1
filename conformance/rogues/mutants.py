#!/usr/bin/env python3
"""Mutation testing of the rooms that decide what a grantee learns: who notices each mutant, the product's own tests, and the probes alone?

    conformance/rogues/mutants.py --list
    conformance/rogues/mutants.py --sample N [--seed S] [--changed REF] [--only tests|suite]
    conformance/rogues/mutants.py --full [--changed REF] [--minutes M] [--only tests|suite] [--profile bench]

`mutator/` puts every mutant of FILES behind a switch in a copy under target/rogues: one build serves for all of them, and an environment variable
says which is on. What does not compile is left out. A first run of every test says which tests come to which mutant; of the others nothing
can be seen. A mutant is shown to the probes that noticed others like it, to all of one seed, to those of five; then, where they do not notice it, to the other tests, those of its own room first. What was found out stands in
target/rogues/mutants.jsonl and is not asked again: that a mutant is noticed as long as its file stays as it is (by the probes: but for its
tests), that it is not as long as the tests do (with `--profile bench` there are no overflow checks to notice it). So a full run may be ended (`--minutes`, or by hand) and goes on where it was. `--sample` takes N of them by a seed (most stay the same where a file changes); with `--changed` N of files that differ from a commit
go first. `--full --changed` takes those alone. The product has no such switch (docs/decisions.md).

Scores are printed for each file. Exit status 3 when a mutant survives the tests that EQUIVALENT does not name, or the probes that neither it, nor UNSEEN, nor
SURVIVORS does; 1 when nothing could be measured.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from run import COPY, ROOT, copy

FILES = """crates/memory/src/profile.rs crates/memory/src/profile/document.rs crates/memory/src/profile/field.rs crates/memory/src/profile/text_rule.rs
crates/memory/src/project.rs crates/memory/src/filter.rs crates/memory/src/commitment.rs
crates/memory/src/chain.rs crates/memory/src/receipt.rs crates/memory/src/receipt/verified.rs crates/memory/src/receipt/chain.rs crates/memory/src/receipt/action.rs crates/memory/src/receipt/content.rs
crates/exchange/src/gate.rs crates/exchange/src/bridge.rs crates/exchange/src/ccc.rs crates/exchange/src/view.rs crates/exchange/src/answer.rs
crates/exchange/src/lens.rs crates/exchange/src/slice.rs crates/exchange/src/member.rs crates/exchange/src/item.rs crates/exchange/src/renewal.rs crates/exchange/src/query.rs
crates/exchange/src/allowance.rs grants/src/limits.rs grants/src/verify.rs grants/src/token.rs grants/src/dpop.rs grants/src/attenuate.rs
gateway/src/service/budget.rs gateway/src/service/cursor.rs gateway/src/service/query.rs gateway/src/service/export.rs gateway/src/service/grants/exchange.rs
gateway/src/service/audit.rs gateway/src/state/spent.rs gateway/src/http/invoke.rs""".split()
SWITCH = """
/// Whether a mutant is on: the one that OAP_MUTANT numbers. Without one, each that is come to is written down with its thread, which a test names.
#[doc(hidden)]
#[must_use]
pub fn mutant(number: u32) -> bool {
    use std::io::Write;
    static ON: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    static REACHED: std::sync::OnceLock<Option<std::fs::File>> = std::sync::OnceLock::new();
    thread_local! { static SEEN: std::cell::RefCell<std::collections::HashSet<u32>> = std::cell::RefCell::default(); }
    let on = *ON.get_or_init(|| std::env::var("OAP_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0));
    if on == 0 {
        let file = REACHED.get_or_init(|| {
            let path = std::env::var_os("OAP_MUTANTS_REACHED")?;
            std::fs::OpenOptions::new().create(true).append(true).open(path).ok()
        });
        if let Some(mut file) = file.as_ref() {
            let fresh = SEEN.try_with(|seen| seen.borrow_mut().insert(number)).unwrap_or(false);
            if fresh {
                let _ = file.write_all(format!("{number} {}\\n", std::thread::current().name().unwrap_or("")).as_bytes());
            }
        }
    }
    on == number
}
"""
# Everything that tests these rooms without a listening gateway, by targets of cargo.
TESTS = """--lib --test bounds --test commitment --test sd_jwt --test metamorphic --test way --test delegation --test token --test model --test forgeries
--test cases --test portable --test living --test changes --test gateway""".split()
# Of the gateway's tests, which are one program, these.
PARTS = "attacks:: exchange:: gates:: living:: passed_on:: projection::".split()
SUITE, PROBES = "--test probes".split(), "the_honest_gateway_fails_no_probe"
# What nothing can tell apart, or no test of ours tells: pattern of the file, of the function, of "what stood there -> what it becomes", the reason.
EQUIVALENT = [
    (r"chain.rs", r"verify", r"links.len\(\) > MAX_LINKS -> \(links.len\(\)\) >= ", "a bound of ours on size, no rule of the protocol; gateway/tests/limits holds it"),
    (r"item.rs", r"members", r"-> \(n\) <= ", "no item has a member of that name"),
    (r"answer.rs", r"Answer::begin", r"- \((BESIDE_ITEM|self.items|reference)", "how much room is taken beforehand"),
    (r"answer.rs", r"find", r"is_left_for\(most\) -> true", "what is narrowed answers as what is not"),
    (r"answer.rs", r"find_items", r"-> false", "the same members by another way"),
    (r"commitment.rs", r"Committed::present", r"jwt.len\(\) \+ 1024", "how much room is taken beforehand"),
    (r"dpop.rs", r"judge", r"is_none_or", "what ends when it begins always has a life"),
    (r"project.rs", r"Choice::shows_span", r"is_none_or", "a span of no class has no wire form, and neither has its item"),
    (r"receipt/content.rs", r"check_covered", r"version.is_none_or", "a receipt with one tag has a version: its tags were read before"),
    (r"answer.rs", r"find", r"^meaning.is_some\(\) && ", "what is not narrowed answers the same, and costs more"),
    (r"answer.rs", r"Ranked<'_>::eq", r".*", "a heap asks for the order alone"),
    (r"item.rs", r"ViewItem::answer", r"iter\(\).all", "of what has several parts none is empty"),
    (r"verify.rs", r"Subscriber::caller", r"is_none_or", "no token counts whose key is not there: Authenticated::still"),
    (r"commitment.rs", r"Written::has_gaps", r"-> true$|\(number\) \+ ", "what is read anew is the same, and costs more"),
    (r"commitment.rs", r"strip_value", r"is_none_or", "every element is concealed: form::check"),
    (r"commitment.rs", r"verify", r"is_some_and\(\|iss\|", "every claim in the clear is there: form::check"),
    (r"service/cursor.rs", r".*open_cursor", r"^0 -> taken away", "a place is compared by its bits; of which kind it is saves work alone"),
]
OWNERS = "in decision records and previews, which are the owner's and no command of the probes returns"
RECEIVERS = "what is checked of what others wrote, to which no command of the probes leads"
# What the probes alone do not see, by the same patterns.
UNSEEN = [
    (r"view.rs", r"View::is_empty", r".*", "tests alone call it"),
    (r"allowance.rs", r"Allowance::exhausted", r"\(grant.remaining\(\)\) != ", "it is compared with what it was, turned round as well; the probes are no device, which is told it"),
    (r"allowance.rs", r"Room<'_>::is_left_for", r"\(\*left\) > |-> false", "what is narrowed answers as what is not"),
    (r"gate.rs", r"(Fired|Report)::.*", r".*", OWNERS),
    (r"gate.rs", r"Gate::judge", r"own_agent", "nobody from outside has the owner's key"),
    (r"gate.rs", r"Gate::ends", r"\(\*end\) >= ", "a view is built anew once more"),
    (r"(view|slice|member|item).rs", r".*::bytes|.*::size|size|Labels::release", r".*", "how much memory is said to be taken"),
    (r"gate.rs", r"is_of", r"^rest", "the grantees of probes are did:keys, which are below no entry"),
    (r"bridge.rs", r"SignedBridge::sign", r"-> \(bridge.valid_until\) < ", "a bridge that ends when it begins carries nothing"),
    (r"bridge.rs", r"SignedBridge::verify", r"\|\| .* -> .*\) && \(", "nobody from outside has a bridge taken that the gateway did not sign"),
    (r"bridge.rs", r"check", r"^bridge.revocable -> true", "the gateway itself writes that a bridge is revocable"),
    (r"bridge.rs", r"Bridge::carries", r"^self.issued_at <= now -> \(self.issued_at\) < ", "a bridge holds from when it was signed, and nobody asks before"),
    (r"profile/document.rs", r"line_of", r".*", "how a refusal is worded"),
    (r"memory/src/profile.rs", r"Profile::parse", r"^part.bytes\(\).all|number.to_string", "which letters and zeros a name may have the protocol does not say"),
    (r"profile/field.rs", r"Condition::parse", r"^path.contains\('\['\) -> false", "whether a condition may be on elements the protocol does not say"),
    (r"profile/field.rs", r"FieldPath::parse", r"CONCEALED.*-> true|^text == \"content\" \|\| ", "a path that shows nothing: whether it is refused the protocol does not say"),
    (r"memory/src/profile(/\w+)?\.rs", r"FieldPath::conditions", r".*", OWNERS),
    (r"project.rs", r"explain", r".*", OWNERS),
    (r"memory/src/profile.rs", r"Profile::entity_(type|table)", r".*", OWNERS),
    (r"filter.rs", r"Filter::check", r"shown.captured_at.is_none_or", RECEIVERS),
    (r"chain.rs", r"verify|VerifiedChain::.*|UnverifiedChain::.*", r".*", RECEIVERS),
    (r"memory/src/receipt/(verified|chain).rs", r"verify.*|VerifiedReceipt::.*|UnverifiedChain::.*", r".*", RECEIVERS),
    (r"receipt/content.rs", r".*", r".*", RECEIVERS),
    (r"commitment.rs", r"shapes.*|content|strip_value", r".*", RECEIVERS),
    (r"view.rs", r"View::concerns", r"-> true$|is_none_or", "which changes a view looks at, not what is in it"),
    (r"verify.rs", r"verify", r"caller\.claims\.(sub|iss)", "a token that says something else has another signature"),
    (r"verify.rs", r"VerifiedGrant::is_own_agent", r".*", "nobody from outside has the owner's key"),
    (r"slice.rs", r"Recent::since|Slice::since", r"since -> None", "all is looked at instead of what changed"),
    (r"slice.rs", r"Recent::note", r"MAX_RECENT", "how many changes are remembered; where fewer are, all is looked at"),
    (r"view.rs", r"View::(is_noted|is_over)", r"-> true$|is_none_or|\(end\) < ", "a view that is built anew, or looks at more, answers as one that is not"),
    (r"verify.rs", r"Authenticated::still", r".*", "what ends between an answer and its record"),
    (r"token.rs", r"Signed::counts", r"nbf|iat", "a token of ours that begins later: nobody outside can sign one"),
    (r"limits.rs", r"Limits::check", r"grant.parent.is_some", "the owner's side has no command for it"),
    (r"commitment.rs", r"verify", r".iss.", RECEIVERS),
    (r"commitment.rs", r"Committed::made", r".*", "how it is stored"),
    (r"gate.rs", r"Gate::confidentiality", r"valid_from.begins\(\) <= now -> \(nda.valid_from.begins\(\)\) < ", "the first moment of a day"),
    (r"slice.rs", r"Slice::judge_anew", r"before.rules", OWNERS),
    (r"attenuate.rs", r"why", r".*", "how a refusal is worded"),
    (r"query.rs", r"Query::check", r"MAX_CURSOR\) -> false", "a cursor that is too long is none that was given, and refused alike"),
    (r"limits.rs", r"Limits::check_extent", r"expires_at <= now", "a grant that ends now, or before it begins, is refused at its exchange"),
    (r"answer.rs", r"Found::load", r"bytes > most|items.is_empty|item.size", "an answer of 16 MiB is not asked for"),
    (r"lens.rs", r"Lens::admits", r"\|\||-> true", "which changes a view looks at, not what is in it"),
    (r"gate.rs", r"Obligations::before", r"-> \(b.to_scope == \*to\) \|\||screened -> true|\(scope.as_str\(\)\) != ", "a gate that has more with it than it asks decides the same"),
    (r"(view|slice).rs", r"(View|Slice)::has_vectors|Slice::rebuilt_at", r"-> true|&&|>= |retry", "the model of embeddings is at hand, or there is none"),
    (r"answer.rs", r"find_items", r"-> true", "who names items asks for no words"),
    (r"answer.rs", r"Found::discloses|pick", r"discloses -> (true|false)|allowance.contains|hit.is_new", "of two answers that are given at once"),
    (r"renewal.rs", r"Step::leave_out", r"-> \(\)$", "what changes while a view follows"),
    (r"gate.rs", r"Gate::confidentiality", r"\(now\) <= ", "the last moment of a day"),
    (r"gate.rs", r"Gate::changed", r"\(asks\) \|\|", "a view that looks at more answers as one that does not"),
    (r"slice.rs", r"Slice::judge_anew", r"passes -> true", "a view that looks at more answers as one that does not"),
    (r"renewal.rs", r"Renewal::step", r"\(self.embeds\) \|\|", "the model of embeddings is at hand, or there is none"),
    (r"limits.rs", r"check_sound", r".*", RECEIVERS),
    (r"filter.rs", r"Filter::check", r"shown.labels.is_none_or", RECEIVERS),
    (r"view.rs", r"View::forget", r".*", "what is gone is taken out in the next step, and found anew until then"),
    (r"(view|slice).rs", r"View::len|Slice::len", r"-> 1$", "how large a view is said to be"),
    (r"allowance.rs", r"Disclosed::count", r".*", OWNERS),
    (r"(view|slice).rs", r"View::let_go|Slice::(let_go|keeps_back)|Judged::(let_go|expire)", r"-> (\(\)|true|false)$|\(end\) < ", OWNERS),
    (r"slice.rs", r"Slice::expire", r"\(end\) < ", "a view that is built anew answers as one that follows"),
    (r"service/export.rs", r"Selection::.*|Exports<'_>::(export_header|known_documents|export_page|item_line|export_seal)", r".*", "the owner's own export, for which the probes have no command"),
    (r"service/audit.rs", r"Audit<'a>::(last_query|verify_audit|verified_chains?|has_more_than_it_says|chain_list)", r".*", "what the owner is told of the log as a whole, for which the probes have no command"),
    (r"service/budget.rs", r"Budgets<'_>::refill", r".*", "the probes have no command for it"),
    (r"service/budget.rs", r"Budgets<'_>::is_spent", r"epsilon_per_grantee", "what a grantee has over all grants is ten thousand answers"),
    (r"service/query.rs", r"Exchange<'_>::answer_once|Writing<'_, '_>::(still_so|ends_with)", r".*", "what ends, or is given, between an answer and its record"),
    (r"service/grants/exchange.rs", r"Grants<'_>::grant_state", r"StoreError::Full", "a disk that is full"),
    (r"service/grants/exchange.rs", r"Grants<'_>::presented", r"MAX_CHAIN - 1 -> ", "how a refusal is worded"),
    (r"service/audit.rs", r"AuditQuery::check", r"MAX_AUDIT_TEXT", "a bound of ours on size, no rule of the protocol"),
    (r"service/audit.rs", r"Audit<'a>::audit_owner", r"\*wanted == name", "a chain is asked for by the number of its entries alone"),
    (r"service/audit.rs", r"Audit<'a>::audit_public", r"is_none_or", "every receipt has a decision"),
    (r"service/audit.rs", r"Audit<'a>::countersign", r"revoked_at", "the grantees of probes are did:keys, which have one key for good"),
]
# What the probes could notice and do not, by the same patterns, and what does notice it. It counts as survived in every score, and fails no run.
SURVIVORS = [
    (r"allowance.rs", r"Allowance::contains", r"^contains -> true|self.0.iter\(\).all", "an_item_was_disclosed_where_every_grant_of_a_chain_disclosed_it"),
    (r"lens.rs", r"Lens::exhausted", r"-> Default", "a unit test of crates/exchange"),
    (r"renewal.rs", r"Renewal::step", r"-> taken away|^!entering.is_empty\(\) -> entering", "with a model of embeddings: a test of crates/exchange"),
    (r"answer.rs", r"find", r"^meaning.is_some\(\) -> meaning.is_none", "with a model of embeddings: a_question_is_answered_by_its_meaning"),
    (r"slice.rs", r"Slice::since", r"\(Weak::as_ptr\(&mark.lens\)\) != ", "a test of crates/exchange"),
    (r"memory/src/profile.rs", r"Profile::is_anonymous", r"^self.general.fields\(level\).all.* -> self.general.fields\(level\).any", "one_field_that_identifies_is_enough"),
    (r"memory/src/profile.rs", r"Profile::shows_embedding", r"\.all\(shows\) -> ", "embeddings_are_shown_where_every_table_shows_them"),
    (r"memory/src/profile.rs", r"Profile::shows_subject", r"-> true$", "a_field_among_others_is_shown"),
    (r"grants/src/verify.rs", r"live", r"\(ancestors.len\(\)\) >= ", "five_steps_and_no_sixth"),
    (r"limits.rs", r"Limits::check_delegated", r"\(grant.issued_at\) >= ", "grants/tests/delegation.rs, at five minutes ahead"),
    (r"commitment.rs", r"Committed::is_signed_by", r"-> true$", "a_version_knows_the_key_that_signed_it"),
    (r"commitment.rs", r"is_segment", r"-> true$|\) \|\| \(", "a_class_stands_in_the_clear_at_spans_alone"),
    (r"receipt/verified.rs", r"holds|dated", r"-> (Ok\(None\)|None)$", "of compromised keys: what_is_not_checked_of_a_receipt_is_said"),
    (r"chain.rs", r"Link::followed_by", r"-> at.min", "a clock that goes back: a_link_is_no_earlier_than_the_one_before"),
    (r"query.rs", r"Query::check", r"\(cursor.len\(\)\) >= ", "crates/exchange/tests/bounds.rs"),
]
# Seeds of the probes, the first one and how many: the last of five has a model of embeddings.
FEW, MORE, ALL = (0, 1), (1, 4), (0, 5)
WORKERS = int(os.environ.get("OAP_MUTANT_WORKERS", os.cpu_count() or 1))
CARGO = os.environ.get("CARGO", "cargo")
TARGET = os.environ.get("CARGO_TARGET_DIR", str(COPY.parent / "target"))
ENVIRONMENT = {
    **os.environ, "CARGO_TARGET_DIR": TARGET, "RUST_BACKTRACE": "0", "OAP_PROBE_FIRST": "1",
    "OAP_WITHOUT_SHARED": "1",
}  # fmt: skip
KNOWN, MAPS = COPY.parent / "mutants.jsonl", COPY.parent / "mutants-reached.json"


def source(name):
    """A file of ours without the tests at its end, which hold no mutant."""
    return (ROOT / name).read_bytes().partition(b"\n#[cfg(test)]\nmod tests {")[0]


# Numbers of mutants are those of these very sources.
SAME = hashlib.sha256(b"\0".join(map(source, [*FILES, "conformance/rogues/mutator/src/main.rs"]))).hexdigest()[:16]
EXCLUDED = COPY.parent / f"mutants-that-do-not-compile-{SAME}"


def cargo(arguments, cwd=COPY):
    """What cargo says, line by line."""
    run = subprocess.run([CARGO, *arguments, "--message-format=json"], cwd=cwd, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return run.returncode, said, run.stderr


LIBRARY = "crates/identity/src/lib.rs"


def mutate():
    """Rewrites these files of the copy; the mutants by number. What is as it was keeps its time."""
    stage = COPY.parent / "stage"
    for name in [*FILES, LIBRARY]:
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        (stage / name).write_text((ROOT / name).read_text())
    command = [COPY.parent / "mutator" / "debug" / "oap-mutator", stage, EXCLUDED, *FILES]
    printed = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    with (stage / LIBRARY).open("a") as file:
        file.write(SWITCH)
    for name in [*FILES, LIBRARY]:
        text, place = (stage / name).read_text(), COPY / name
        if not place.is_file() or place.read_text() != text:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    return {mutant["number"]: mutant for mutant in map(json.loads, printed.splitlines())}


def alternatives(text):
    """The places of a rewritten file that belong to one mutant: (first byte, last byte, number)."""
    places, data = [], text.encode()
    for match in re.finditer(rb"oap_identity::mutant\((\d+)\)", data):
        end = match.end()
        if data[end : end + 2] == b" {":
            depth, end = 0, end + 1
            while True:
                depth += {123: 1, 125: -1}.get(data[end], 0)
                end += 1
                if depth == 0:
                    break
        places.append((match.start(), end, int(match[1])))
    return places


def blamed(said):
    """The mutants that do not compile, as far as errors say."""
    found = set()
    for message in said:
        if message.get("reason") != "compiler-message" or message["message"]["level"] != "error":
            continue
        spans = [span for one in [message["message"], *message["message"]["children"]] for span in one["spans"]]
        for span in spans:
            path = COPY / span["file_name"]
            if span["file_name"] not in FILES:
                continue
            inside = [(end - start, n) for start, end, n in alternatives(path.read_text()) if start <= span["byte_start"] < end]
            if inside:
                found.add(min(inside)[1])
    return found


def built(targets, profile):
    """Mutants, and the programs of the tests."""
    build = ["build", "-q", "--manifest-path", str(ROOT / "conformance/rogues/mutator/Cargo.toml"), "--target-dir", str(COPY.parent / "mutator")]
    subprocess.run(["cargo", *build], check=True)
    copy(besides=[*FILES, LIBRARY])
    EXCLUDED.touch()
    for _ in range(12):
        mutants = mutate()
        status, said, errors = cargo(["test", "--workspace", "--profile", profile, "--no-run", "--no-fail-fast", *targets])
        if status == 0:
            break
        worse = blamed(said)
        if not worse:
            print(errors[-4000:], file=sys.stderr)
            sys.exit("the mutated copy does not build, and no mutant is to blame")
        with EXCLUDED.open("a") as file:
            file.writelines(f"{number}\n" for number in sorted(worse))
        print(f"{len(worse)} mutants do not compile", flush=True)
    programs = [(Path(one["executable"]), Path(one["manifest_path"]).parent) for one in said if one.get("executable") and one["profile"]["test"]]
    return mutants, sorted(set(programs))


def run(program, arguments, number, limit, reached=None, seeds=ALL, only=None):
    """Whether a program passes; None where it takes too long. Of the probes, `only` that one."""
    path, folder = program
    if path.name.startswith("gateway-"):
        arguments = arguments or PARTS
    more = {"OAP_MUTANT": str(number)} if number else {"OAP_MUTANTS_REACHED": str(reached)}
    command = [path, f"--test-threads={1 if number else 2}", *arguments]
    environment = {**ENVIRONMENT, **more, "OAP_PROBE_FROM": str(seeds[0]), "OAP_PROBE_SEEDS": str(seeds[1]), **({"OAP_PROBE_ONLY": only} if only else {})}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode == 0, done.stdout


def digest(*paths):
    found = hashlib.sha256()
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()


def mapped(programs, arguments, seeds):
    """Which tests of which programs come to which mutant, and how long each program takes. Kept for programs that are the same."""
    kept = json.loads(MAPS.read_text()) if MAPS.exists() else {}
    by_mutant, took = {}, {}
    for program in programs:
        same = f"{digest(program[0])} {arguments} {seeds}"
        if same not in kept:
            reached = COPY.parent / "reached"
            reached.unlink(missing_ok=True)
            started = time.monotonic()
            passed, said = run(program, arguments, 0, 900, reached, seeds)
            if not passed:
                print(f"left out: {program[0].name} does not pass without a mutant: {re.findall('^    (.*)$', said, re.M)[:5]}", flush=True)
                took[program] = 0
                continue
            names = set(re.findall(r"^test (\S+)", said, re.M))
            lines = [line.partition(" ") for line in reached.read_text().splitlines()] if reached.exists() else []
            tests = sorted({(int(number), thread if thread in names else "") for number, _, thread in lines})
            kept[same] = [time.monotonic() - started, tests]
            MAPS.write_text(json.dumps(kept))
        took[program], tests = kept[same]
        for number, test in tests:
            by_mutant.setdefault(number, {}).setdefault(program, set()).add(test)
    return by_mutant, took


def notices(mutant, programs, took, arguments, all_seeds):
    """What notices a mutant first, those of its own room before others; None where nothing does."""

    def near(program):
        return not (COPY / mutant["file"]).is_relative_to(program[1]), took[program]

    for program in sorted(programs, key=near):
        tests = programs[program]
        chosen = arguments if arguments or "" in tests or len(tests) > 200 else ["--exact", *sorted(tests)]
        limit, name = 30 + 10 * took[program], program[0].name.rsplit("-", 1)[0]
        # What noticed mutants of this function, and of this file, most often is asked first.
        for only in likely(mutant) if name == "probes" else []:
            if only not in ALONE:
                ALONE[only], _ = run(program, chosen, NONE, limit, seeds=FEW, only=only)
            if not ALONE[only]:
                continue
            passed, _ = run(program, chosen, mutant["number"], limit, seeds=FEW, only=only)
            if not passed:
                NOTICED[mutant["file"], mutant["function"]].update([only])
                return name
        # The probes of few seeds notice most.
        for seeds in all_seeds:
            passed, said = run(program, chosen, mutant["number"], limit, seeds=seeds)
            if not passed:
                NOTICED[mutant["file"], mutant["function"]].update(re.findall(r"^([a-z0-9-]+): Failed\(", said, re.M)[:1])
                return name
    return None


# How often each probe noticed a mutant, by file and function; and whether it passes alone where none is on.
NOTICED, ALONE, NONE = defaultdict(Counter), {}, 2**32 - 1


def likely(mutant):
    """The probes that noticed most of a function's mutants and of its file's so far: three at most."""
    of_file = Counter()
    for (file, _), counts in list(NOTICED.items()):
        if file == mutant["file"]:
            of_file += counts
    both = [*NOTICED[mutant["file"], mutant["function"]].most_common(2), *of_file.most_common(2)]
    return list(dict.fromkeys(probe for probe, _ in both))[:3]


class Known:
    """What was found out before, by kind and mutant."""

    def __init__(self, kind, mutants, programs, seeds):
        self.kind, self.tests = kind, f"{digest(*(path for path, _ in programs))} {seeds}"
        # Tests of its own file may be what notices a mutant; to the probes they are nothing.
        read = source if kind == "suite" else lambda name: (ROOT / name).read_bytes()
        files = {name: hashlib.sha256(read(name)).hexdigest() for name in FILES}
        self.names, alike, self.found = {}, {}, {}
        for number, mutant in sorted(mutants.items()):
            same = [files[mutant["file"]], str(mutant["line"]), mutant["kind"], *key(mutant)]
            place = alike[tuple(same)] = alike.get(tuple(same), 0) + 1
            self.names[number] = hashlib.sha256("\n".join([*same, str(place)]).encode()).hexdigest()
        for line in KNOWN.read_text().splitlines() if KNOWN.exists() else []:
            one = json.loads(line)
            self.found[one["kind"], one["mutant"]] = one

    def of(self, number):
        """What notices it, or False where nothing does; None where that is not known."""
        one = self.found.get((self.kind, self.names[number]))
        if one is None or (not one["noticed"] and one["tests"] != self.tests):
            return None
        return one["noticed"] or False

    def add(self, number, noticed):
        with KNOWN.open("a") as file:
            file.write(json.dumps({"kind": self.kind, "mutant": self.names[number], "noticed": noticed, "tests": self.tests}) + "\n")


def measured(kind, chosen, mutants, programs, arguments, until, all_seeds):
    """Prints what survives, and the scores; the survivors. The probes are among the tests: what they notice is not shown to the others."""
    started = time.monotonic()
    by_mutant, took = mapped(programs, arguments, ALL if len(all_seeds) > 1 else FEW)
    reached = sum(number in by_mutant for number in mutants)
    if not reached:
        sys.exit(f"{kind}: no program that passes without a mutant comes to any: nothing was measured")
    print(f"{kind}: {reached} of {len(mutants)} mutants are come to; one run without takes {sum(took.values()):.0f} s", flush=True)
    known, noticed = Known(kind, mutants, programs, all_seeds), {}
    by_probes = Known("suite", mutants, [], []) if kind == "tests" else known

    def look(number):
        mutant = mutants[number]
        found = by_probes.of(number) or known.of(number)
        if found is None:
            if time.monotonic() > until:
                return
            # What is listed as well: whether the reason holds is to be seen.
            found = notices(mutant, by_mutant.get(number, {}), took, arguments, all_seeds)
            known.add(number, found)
        noticed[number] = found or None
        if noticed[number]:
            return
        why = reason(kind, mutant) or survivor(kind, mutant) or ("nothing comes to it" if number not in by_mutant else "SURVIVES")
        print(f"{kind} {number:5} {mutant['file']}:{mutant['line']} {mutant['function']}: {mutant['was']} -> {mutant['becomes']}: {why} ({len(noticed)})", flush=True)

    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        list(pool.map(look, chosen))
    looked = [number for number in chosen if number in noticed]
    if chosen and not looked:
        sys.exit(f"{kind}: nothing was looked at in time")
    survivors = [number for number in looked if not noticed[number]]
    equal = {number for number in survivors if reason(kind, mutants[number])}
    for name in [*FILES, None]:
        of = [number for number in looked if name in (None, mutants[number]["file"])]
        seen, listed = sum(bool(noticed[number]) for number in of), sum(number in equal for number in of)
        rest = len(of) - listed
        score = f"{100 * seen / rest:.1f} %" if rest else "none"
        if of:
            probes = f" ({sum(noticed[number] == 'probes' for number in of)} by the probes)" if kind == "tests" else ""
            print(f"{kind}: {name or 'all'}: {len(of)} looked at, {seen} noticed{probes}, {listed} listed with a reason: {seen} of {rest}, {score}", flush=True)
    left = len(chosen) - len(looked)
    print(f"{kind}: {left} of {len(chosen)} not looked at yet; {time.monotonic() - started:.0f} s", flush=True)
    return [number for number in survivors if number not in equal and not survivor(kind, mutants[number])]


def key(mutant):
    return mutant["file"], mutant["function"], mutant["was"], mutant["becomes"]


def drawn(seed, mutant):
    """Where a mutant stands among those that a seed draws."""
    return hashlib.sha256("\n".join([seed, *key(mutant)]).encode()).digest()


def listed(table, mutant):
    """Why a table names a mutant, if it does."""
    change = f"{mutant['was']} -> {mutant['becomes']}"
    for file, function, edit, why in table:
        if re.search(file + "$", mutant["file"]) and re.fullmatch(function, mutant["function"]) and re.search(edit, change):
            return why
    return None


def reason(kind, mutant):
    return listed(EQUIVALENT + (UNSEEN if kind == "suite" else []), mutant)


def survivor(kind, mutant):
    why = listed(SURVIVORS, mutant) if kind == "suite" else None
    return f"survives, as listed: {why}" if why else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--changed", help="a commit: mutants of files that differ from it")
    parser.add_argument("--only", choices=["tests", "suite"])
    parser.add_argument("--minutes", type=float, default=1e6, help="what is looked at after them is left for another time")
    parser.add_argument("--numbers", type=int, nargs="*", help="these alone")
    parser.add_argument("--profile", default="test", help="of cargo, which programs are built with; with bench a seed of the probes takes half the time")
    given = parser.parse_args()
    started = time.monotonic()
    targets = {"tests": TESTS, "suite": SUITE}.get(given.only, [*TESTS, *SUITE])
    if given.list:
        targets = ["--lib"]
    changed = set()
    if given.changed:
        changed.update(subprocess.check_output(["git", "diff", "--name-only", given.changed], cwd=ROOT, text=True).split())
        if not changed & set(FILES):
            print(f"none of these rooms differs from {given.changed}")
            if given.full:
                return 0
    mutants, programs = built(targets, given.profile)
    left_out = len(set(EXCLUDED.read_text().split()))
    print(f"{len(mutants)} mutants in {len(FILES)} files, {left_out} that do not compile left out; built in {time.monotonic() - started:.0f} s", flush=True)
    for entry in EQUIVALENT + UNSEEN + SURVIVORS:
        if not any(listed([entry], mutant) for mutant in mutants.values()):
            print(f"listed, and of no mutant: {' '.join(entry)}", flush=True)
    if given.list:
        for mutant in mutants.values():
            print(f"{mutant['number']:5} {mutant['file']}:{mutant['line']} {mutant['function']}: {mutant['kind']}: {mutant['was']} -> {mutant['becomes']}")
        return 0
    chosen = sorted(mutants, key=lambda number: drawn(given.seed, mutants[number]))
    differ = [number for number in chosen if mutants[number]["file"] in changed]
    if given.numbers:
        chosen = [number for number in given.numbers if number in mutants]
    elif given.sample is not None:
        chosen = list(dict.fromkeys([*differ[: given.sample], *chosen[: given.sample]]))
    elif given.full and given.changed:
        chosen = differ
    elif not given.full:
        parser.error("--list, --sample N, --numbers N... or --full")
    probes = [program for program in programs if program[0].name.startswith("probes-")]
    tests = [program for program in programs if program not in probes]
    survivors, until = [], started + 60 * given.minutes
    if given.only != "tests":
        survivors = measured("suite", chosen, mutants, probes, [PROBES], until, [FEW] if given.sample else [FEW, MORE])
    if given.only != "suite":
        survivors += measured("tests", chosen, mutants, tests, [], until, [FEW])
    return 3 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
