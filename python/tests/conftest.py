from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from gateway import BINARY, Gateway
from hypothesis import settings

# The same examples in every run, however fast the machine; HYPOTHESIS_EXAMPLES=2000 looks for others.
_MORE = os.environ.get("HYPOTHESIS_EXAMPLES")
settings.register_profile("ours", deadline=None, derandomize=_MORE is None, max_examples=int(_MORE or 100))
settings.load_profile("ours")


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    if not BINARY.exists() and "OAP_MEMORY" not in os.environ:
        pytest.skip("no oap-memory: build it, or name it in OAP_MEMORY")
    gateway = Gateway(tmp_path_factory.mktemp("house"))
    try:
        gateway.item("Meetings on Tuesday mornings, write to ann@b.example")
        gateway.item("The old website runs on a server in the cellar")
        gateway.item("Tea at nine")
        yield gateway
    finally:
        gateway.stop()
