"""What docs/oauth.md shows of `/mcp` under a grant, run as it stands there against the real gateway."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
from gateway import Gateway
from portable import ROOT

from oap_memory import Client, PrivateKey
from oap_memory.wire import trust

PAGE = (ROOT / "docs" / "oauth.md").read_text()


def test_the_page_leads_to_mcp_under_a_grant(
    house: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = PrivateKey.new()
    key.save(tmp_path / "my.key")
    (tmp_path / "grant.json").write_text(json.dumps(house.grant(key.did)))
    [code] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    # The certificate and the DID of the tests' gateway are on this machine alone.
    code = code.replace("https://memory.example.org", house.origin)
    code = code.replace('.load("my.key"))', '.load("my.key"), ca_file=CA_FILE, allow_local_dids=True)')
    code = code.replace("httpx.Client()", "httpx.Client(verify=TRUST)")
    monkeypatch.chdir(tmp_path)
    exec(code, {"CA_FILE": house.ca_file, "TRUST": trust(house.ca_file)})
    said = capsys.readouterr().out
    assert said.startswith("['memory_recall', 'memory_query', 'memory_explain']")
    assert "<memory-item" in said
    assert "Tuesday mornings, write to [email]" in said


def test_a_proof_is_of_one_message(house: Gateway) -> None:
    key = PrivateKey.new()
    url = f"{house.origin}/mcp"
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    with (
        Client(house.grant(key.did), key, ca_file=house.ca_file, allow_local_dids=True) as client,
        httpx.Client(verify=trust(house.ca_file)) as http,
    ):
        once, again = client.authorization("POST", url), client.authorization("POST", url)
        assert once["Authorization"] == again["Authorization"]
        assert once["DPoP"] != again["DPoP"]
        assert http.post(url, json=message, headers=accept | once).status_code == 200
        assert http.post(url, json=message, headers=accept | once).status_code == 401
        assert http.post(url, json=message, headers=accept | again).status_code == 200
