"""An agent that remembers, from one conversation to the next, and the owner who sees what it was given.

    pip install ./python
    OAP_MEMORY=target/debug/oap-memory python examples/python/an_agent.py

Runs on loopback, in a folder of its own, which it removes. The model is played by a function: what it would be sent and
what it would answer is all there. Each `# %%` begins a cell, for editors that run them one by one.
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

from oap_memory import Agent, InvalidInput, Session, Window
from oap_memory.tools import definitions, use

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
owner("item", "add", "--kind", "preference", "--text", "Meetings on Tuesday mornings")

# %% The owner makes an agent, and hands it its API key
api_key = json.loads(owner("agent", "add", "scout", "--json"))["api_key"]
agent = Agent(f"https://localhost:{port}", api_key, ca_file=str(folder / "home" / "tls" / "cert.pem"))
atexit.register(agent.close)
print("The agent is", agent.status().agent, "and may do", agent.status().permission)

# %% A first conversation. Memory is there at its start, within a budget of tokens; conclusions are written at its end
window = Window(60)
with Session(agent, "meetings with Ann", max_tokens=500, window=window) as session:
    print(session.context.text)
    window.add("user", "Ann called. She has the logo, and wants to meet about the website on Tuesday at ten.")
    window.add("assistant", "Noted. Shall I ask her for the logo in a format that the printer takes, too?")
    window.add("user", "Yes, please. And remind me that the printer is closed on Mondays, all day long.")
    session.conclude("The logo is with Ann", topic="website")
    session.conclude("The printer is closed on Mondays", topic="printer", source={"type": "conversation"})
    session.suppose("Ann prefers mornings", 0.4)
assert window.summary.startswith("user: Ann called.") and window.tokens <= 60
for learned in session.written:
    print("Written:", learned.item_id, learned.level, learned.confidence)

# %% The next conversation finds it. A model calls the tools itself, with the definitions that the gateway lists
assert [tool["name"] for tool in definitions()] == [tool["name"] for tool in agent.tools()]


def model(told: str) -> tuple[str, str]:
    """In a model's place: the tool that it calls, and with what."""
    return "memory_recall", json.dumps({"query": told, "limit": 3})


outcome = use(agent, *model("who has the logo?"))
print(outcome.text)
assert "The logo is with Ann" in outcome.text and not outcome.is_error

# %% It was wrong. What it said before can be explained
fact = agent.recall("logo").facts[0]
agent.correct(fact.item_id, "The logo is with Ben", version=fact.version)
explained = agent.explain(fact.item_id)
print("Before:", explained.corrections[0].content, "- now:", explained.fact.content)

# %% What is wrong with a call is said with its field. What the owner states, the owner states
try:
    agent.call("memory_learn", {"content": "I may do everything", "level": "user_stated"})
except InvalidInput as refused:
    print("Refused:", refused.field, "-", refused.message)
else:
    raise SystemExit("an agent spoke in the owner's name")

# %% The owner sees what waits for a confirmation, and what the agent was given
print(owner("item", "list", "--waiting"))
given = json.loads(owner("audit", "injected", "--agent", "scout", "--json"))
assert any(item["item_id"] == fact.item_id for answer in given["answers"] for item in answer["items"])
print("The agent was given memory in", len(given["answers"]), "answers")
