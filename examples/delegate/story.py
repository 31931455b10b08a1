"""A project is delegated: an owner, a studio that is contracted, and the studio's helper, each with a gateway.

    pip install ./python
    OAP_MEMORY=target/debug/oap-memory python examples/delegate/story.py

Runs on loopback, in a folder of its own, which it removes, in about a minute; README.md tells the story. Everything
that it says is asserted, and at the end the receipts of all three are held against each other.
"""

from __future__ import annotations

import atexit
from functools import partial
from pathlib import Path
from typing import Any

from gateways import Gateway, Town, until
from receipts import Books, compare, notices_each

from oap_memory import Agent, verify

HERE = Path(__file__).parent


def say(what: str) -> None:
    """Tells what happened."""
    print(what, flush=True)


def texts(answer: dict[str, Any]) -> list[str]:
    """What the items of an answer say."""
    return sorted(item["content"]["text"] for item in answer["items"])


def theirs(found: dict[str, Any]) -> list[str]:
    """What others say, of what a recall found."""
    return sorted(item["content"] for item in found["from_peers"]["items"])


def is_revoked(grantee: Gateway) -> bool:
    """Whether a grantee's wallet knows that its grant is void."""
    state: str = grantee.json("grant", "received")["received"][0]["state"]
    return state == "revoked"


def ask(books: Books, grantee: Gateway, grant: str, *arguments: str) -> dict[str, Any]:
    """A query of a grantee's; the answer is kept, and verified by a program that is not the gateway."""
    grantee.run("query", "--save", str(grantee.file("answer.json")), *arguments)
    answer: dict[str, Any] = grantee.read("answer.json")
    books.answers.append(answer)
    books.exchanges[grant] += 1
    return answer


# %% Three gateways, each with a principal of its own; nobody stands above them
town = Town("owner", "studio", "helper")
atexit.register(town.end)
owner, studio, helper = town.gateways
of_studio = Books(studio.did, studio.document(), [], [], [])
of_helper = Books(helper.did, helper.document(), [], [], [])

# %% What the owner's assistant knows comes in as a file
assert owner.json("import", str(HERE / "project.jsonl"), "--as", "assistant")["imported"] == 6
say("The owner imports six items: five about the site, and one about penicillin.")

# %% The two that will deal with each other pin each other's keys
for one, other in ((owner, studio), (studio, owner)):
    one.run("peer", "add", other.did)
    assert [peer["state"] for peer in one.json("peer", "list")["peers"]] == ["sound"]
say("The owner and the studio pin each other's gateways.")

# %% The studio asks; that gives it nothing
terms = ["--label", "website", "--max-items", "50", "--until", "30d", "--trust-level", "3", "--delegable", "1"]
asked = studio.json("grant", "request", "--from", owner.did, "--purpose", "Website redesign", *terms)
task = until("a request in the inbox", lambda: owner.json("grant", "inbox")["asks"])[0]
assert (task["from"], task["state"], task["ask"]["delegable"]) == (studio.did, "pending", {"max_depth": 1})
say("The studio asks for what is labelled website, for thirty days, at level 3, to be passed on once.")

# %% The owner looks at what it would show now, and gives less
shown = owner.run("grant", "inbox", "show", task["task"])
assert 'They say: "Website redesign"' in shown and "18,000 euros" in shown and "penicillin" not in shown, shown
owner.refused(2, "max", "grant", "approve", task["task"], "--max-items", "51", "--yes")
less = ["--exclude-label", "budget", "--max-items", "20", "--until", "14d", "--trust-level", "2"]
granted = owner.json("grant", "approve", task["task"], *less, "--yes")
say("The owner sees what that would show, leaves the budget out, and signs: fourteen days, level 2.")

# %% The grant comes into the studio's wallet by itself
received = until("a grant in the wallet", lambda: studio.json("grant", "received")["received"])[0]
grant: str = received["hash"]
assert (grant, received["request"], received["state"]) == (granted["hash"], asked["request"], "active")
assert studio.json("grant", "received", "check", grant)["state"] == "active"
studio.run("grant", "received", "show", grant, "--out", str(studio.file("grant.json")))
say("The grant arrives in the studio's wallet.")

# %% The studio asks under it, and verifies what comes
answer = ask(of_studio, studio, grant, "--grant", str(studio.file("grant.json")))
expected = [
    "Meetings about the site on Tuesday mornings",
    "The copy for the site is with Mira, [email]",
    "The new site goes live on 15 June",
    "The staging site asks for a login, password: [secret]",
]
assert texts(answer) == expected, texts(answer)
assert verify(answer, documents=[owner.document()], grant=studio.read("grant.json")).kind == "answer"
for text in expected:
    say(f"  the studio is shown: {text}")

# %% An agent of the studio's recalls through the studio's gateway: its own memory, and the owner's
studio.run("item", "add", "--kind", "fact", "--text", "We hand a site over a week before it goes live")
key = studio.json("agent", "add", "planner")["api_key"]
planner = Agent(studio.origin, key, ca_file=str(studio.folder / "home" / "tls" / "cert.pem"))
atexit.register(planner.close)
told = planner.call("memory_recall", {"query": "when does the site go live?", "peers": True, "deadline": 25})
of_studio.exchanges[grant] += 1
found = told.structured
assert [fact["content"] for fact in found["facts"]] == ["We hand a site over a week before it goes live"], found
assert "The new site goes live on 15 June" in theirs(found), found
assert all(item["level"] == "external" and item["confidence"] <= 0.5 for item in found["from_peers"]["items"])
assert f'source="{owner.did}"' in told.text and 'level="external"' in told.text, told.text
alone = planner.recall("when does the site go live?")
assert [fact.content for fact in alone.facts] == ["We hand a site over a week before it goes live"]
say("An agent of the studio's recalls both memories at once; what is the owner's is external, with its source.")

# %% The studio passes less of it on. More it cannot
parent = str(studio.file("grant.json"))
for wider in (["--trust-level", "3"], ["--label", "health"], ["--max-items", "21"], ["--until", "20d"]):
    tried = studio.ran("grant", "delegate", grant, "--to", helper.did, *wider)
    assert tried.returncode != 0 and "must be within the one that it was made from" in tried.stderr, tried
narrow = ["--purpose", "Copy for the new site", "--all-labels", "copy", "--max-items", "5", "--until", "7d"]
child_file = str(studio.file("child.json"))
child = studio.json("grant", "delegate", grant, "--to", helper.did, *narrow, "--out", child_file)["hash"]
assert helper.ran("grant", "received", "add", child_file).returncode != 0
taken = helper.json("grant", "received", "add", child_file, "--chain", parent)
assert (taken["hash"], taken["granter"], taken["state"]) == (child, owner.did, "active"), taken
say("The studio passes on what is labelled copy, for seven days, to its helper; more than it has it cannot.")

# %% The helper asks the owner's gateway, and recalls through its own
answer = ask(of_helper, helper, child, "--grant", child_file, "--chain", parent, "who writes the copy?")
assert texts(answer) == ["The copy for the site is with Mira, [email]"], texts(answer)
held = {"documents": [owner.document(), studio.document()], "grant": helper.read("../studio/child.json")}
assert verify(answer, ancestors=[studio.read("grant.json")], **held).kind == "answer"
found = helper.json("recall", "copy site live", "--deadline", "25")
of_helper.exchanges[child] += 1
assert theirs(found) == ["The copy for the site is with Mira, [email]"], found
found = studio.json("recall", "copy", "--deadline", "25")
assert theirs(found) == ["The copy for the site is with Mira, [email]"], found
say("  the helper is shown: The copy for the site is with Mira, [email]")

# %% The owner sees who was shown what, through whose hands
copy = answer["items"][0]["item_id"]
assert {item["item_id"] for item in owner.json("who", helper.did)["shown"]} == {copy}
assert len(owner.json("who", studio.did)["shown"]) == 4
say("The owner sees that the studio was shown four items, and the helper one.")

# %% The owner deletes that one: whoever was shown it is told, and signs
owner.run("delete", "--item", copy, "--yes", "--receipt", str(owner.file("deletion.json")))
deletion = owner.read("deletion.json")


def report() -> list[dict[str, Any]]:
    """What became of the deletion at those who were shown the item."""
    grantees: list[dict[str, Any]] = owner.json("delete", "--report", deletion["receipt_id"])["grantees"]
    return grantees


until("confirmed by both", lambda: sorted(line["state"] for line in report()) == ["confirmed", "confirmed"])
assert theirs(helper.json("recall", "copy", "--deadline", "25")) == []
assert expected[1] not in texts(ask(of_studio, studio, grant, "--grant", parent))
say("The owner deletes the item about the copy: both gateways sign that they have nothing of it.")

# %% The owner takes the grant back: what was made from it ends with it
owner.run("grant", "revoke", granted["grant"]["grant_id"])
for gateway in (studio, helper):
    until("a wallet that knows", partial(is_revoked, gateway))
studio.refused(3, "403", "query", "--grant", parent)
helper.refused(3, "403", "query", "--grant", child_file, "--chain", parent)
of_studio.refusals[grant] += 1
of_helper.refusals[child] += 1
for gateway, own in ((studio, 1), (helper, 0)):
    assert gateway.json("recall", "site", "--deadline", "25")["from_peers"]["peers"] == []
    # Nothing of what they were shown became theirs.
    assert len(gateway.json("item", "list")["items"]) == own
say("The owner revokes the grant: both wallets know, both gateways are refused, and neither has kept anything.")

# %% What the three wrote down of all this
until(
    "every letter arrived", lambda: {one["state"] for one in owner.json("peer", "outbox")["letters"]} == {"delivered"}
)
of_owner = Books.of(owner)
of_owner.told.append({"receipt": deletion, "grantees": report(), "shown_to": [studio.did, helper.did]})
for books, gateway in ((of_studio, studio), (of_helper, helper)):
    now = Books.of(gateway)
    books.log, books.received, books.letters = now.log, now.received, now.letters
of_studio.given = studio.json("audit", "injected", "--agent", "planner")["answers"]
grantees = {grant: of_studio, child: of_helper}
matched = compare(of_owner, grantees)
left_out = notices_each(of_owner, grantees)
for gateway in town.gateways:
    gateway.run("audit", "verify")
say(f"{matched} receipts have their counterparts; with any one of {left_out} left out it would have been noticed.")
