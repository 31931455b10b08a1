"""Brief a contractor's agent without handing over your chats, from both sides.

    pip install ./python
    OAP_MEMORY=target/debug/oap-memory python examples/python/brief_a_contractor.py

Runs on loopback, in a folder of its own, which it removes. The owner's side is the `oap-memory` program; the contractor
has no gateway, only this package. Each `# %%` begins a cell, for editors that run them one by one.
"""

# %% The owner's gateway, over TLS
import atexit
import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from oap_memory import Client, GatewayError, PrivateKey, Refused, verify

OAP = os.environ.get("OAP_MEMORY", "target/debug/oap-memory")
folder = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, folder)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]


def owner(*arguments: str) -> str:
    """A command of the owner's."""
    command = [OAP, "--home", str(folder / "home"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


owner("init", "--did", f"did:web:localhost%3A{port}", "--key-file", str(folder / "master.key"))
gateway = subprocess.Popen(
    [OAP, "--home", str(folder / "home"), "--allow-local-dids", "serve", "--listen", f"127.0.0.1:{port}"],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    env={**os.environ, "RUST_LOG": "info"},
)
atexit.register(gateway.communicate)
atexit.register(gateway.terminate)
while gateway.stdout and "serving" not in gateway.stdout.readline():
    if gateway.poll() is not None:
        raise SystemExit("the gateway did not begin to serve")

# %% What the owner's assistant knows
owner("item", "add", "--kind", "preference", "--label", "website", "--text", "Meetings on Tuesday mornings")
owner("item", "add", "--kind", "fact", "--label", "website", "--text", "The logo is with Ann, ann@design.example")
owner("item", "add", "--kind", "fact", "--label", "health", "--text", "Allergic to penicillin")

# %% The contractor makes a key, and tells its DID
key = PrivateKey.new()
key.save(folder / "my.key")
print("The contractor is", key.did)

# %% The owner grants what is labelled `website`, without personal data (level 2), for thirty days
terms = ["--purpose", "Website redesign", "--label", "website", "--until", "30d", "--trust-level", "2"]
owner("grant", "issue", "--to", key.did, *terms, "--out", str(folder / "grant.json"))
grant = json.loads((folder / "grant.json").read_text())

# %% The contractor asks. The grant leads to the gateway; what comes back is verified before it is shown
contractor = Client(
    grant,
    PrivateKey.load(folder / "my.key"),
    ca_file=str(folder / "home" / "tls" / "cert.pem"),  # the gateway's certificate is self-made here
    allow_local_dids=True,  # loopback is no public address
)
atexit.register(contractor.close)
answer = contractor.query("when to meet, and where is the logo?")
for text in answer.texts:
    print("-", text)
assert answer.texts and not any("ann@" in text or "penicillin" in text for text in answer.texts)

# %% What is proved, and what is not
print("Answered by", answer.report.facts["principal"], "on", answer.report.facts["timestamp"])
for one in answer.report.unchecked:
    print("Not checked:", one.why)

# %% The answer is evidence: it verifies offline, for anybody with the owner's DID document
document = json.loads((folder / "home" / "did.json").read_text())
assert verify(answer.wire, documents=[document], grant=grant).kind == "answer"
answer.wire["items"][0]["content"]["text"] = "Meetings on Mondays"
try:
    verify(answer.wire, documents=[document], grant=grant)
except Refused as wrong:
    print("A changed word is refused:", wrong)
else:
    raise SystemExit("a changed answer was believed")

# %% Both sides sign that it happened
joint = contractor.ack(contractor.audit(limit=1)[0])
print("Signed by", " and ".join(signature["by"].partition("#")[0] for signature in joint["signatures"]))

# %% The owner takes the grant back: the next question is refused
owner("grant", "revoke", grant["grant_id"])
try:
    contractor.query("when to meet?")
except GatewayError as refused:
    print("Refused:", refused)
else:
    raise SystemExit("a revoked grant was answered")
assert contractor.state() == "revoked"
