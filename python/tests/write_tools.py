"""Writes `tools.json` anew from what the real program lists: `OAP_MEMORY=... python tests/write_tools.py`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from gateway import Gateway
from portable import ROOT

from oap_memory import Agent

FILE = ROOT / "python" / "src" / "oap_memory" / "tools.json"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(Path(folder))
        try:
            with Agent(gateway.origin, gateway.agent("scout"), ca_file=gateway.ca_file) as agent:
                FILE.write_text(json.dumps(agent.tools(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        finally:
            gateway.stop()


if __name__ == "__main__":
    main()
