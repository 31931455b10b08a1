from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from gateway import BINARY, Gateway
from hypothesis import settings

from oap_memory import Agent, Client, PrivateKey, openintent

# The same examples in every run, however fast the machine; HYPOTHESIS_EXAMPLES=2000 looks for others.
_MORE = os.environ.get("HYPOTHESIS_EXAMPLES")
settings.register_profile("ours", deadline=None, derandomize=_MORE is None, max_examples=int(_MORE or 100))
settings.load_profile("ours")


def _built() -> None:
    if not BINARY.exists() and "OAP_MEMORY" not in os.environ:
        pytest.skip("no oap-memory: build it, or name it in OAP_MEMORY")


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    _built()
    gateway = Gateway(tmp_path_factory.mktemp("house"))
    try:
        gateway.item("Meetings on Tuesday mornings, write to ann@b.example")
        gateway.item("The old website runs on a server in the cellar")
        gateway.item("Tea at nine")
        yield gateway
    finally:
        gateway.stop()


@pytest.fixture(scope="session")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway for agents, which begins without memory."""
    _built()
    gateway = Gateway(tmp_path_factory.mktemp("office"))
    try:
        yield gateway
    finally:
        gateway.stop()


@pytest.fixture(scope="session")
def _scout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the examples of the agent's side have: a gateway of their own, and an agent of it."""
    _built()
    gateway = Gateway(tmp_path_factory.mktemp("examples"))
    try:
        key = gateway.agent("scout")
        with Agent(gateway.origin, key, ca_file=gateway.ca_file) as agent:
            yield {"agent": agent, "gateway_and_key": (gateway.origin, key), "ca_file": gateway.ca_file}
    finally:
        gateway.stop()


@pytest.fixture(scope="session")
def _bridged(_scout: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What the examples of OpenIntent's client have: that agent."""
    with openintent.Client(*_scout["gateway_and_key"], ca_file=_scout["ca_file"]) as client:
        yield {**_scout, "client": client}


@pytest.fixture(scope="session")
def _contractor(house: Gateway) -> Iterator[dict[str, Any]]:
    """What the examples of the grantee's client have: a grant that allows exports."""
    key = PrivateKey.new()
    grant = house.grant(key.did, "--allow-export")
    with Client(grant, key, ca_file=house.ca_file, allow_local_dids=True) as client:
        yield {"client": client, "grant": grant, "key": key, "ca_file": house.ca_file}


@pytest.fixture(autouse=True)
def _examples(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    node = request.node
    if not isinstance(node, pytest.DoctestItem):
        return
    if node.name.startswith("oap_memory.openintent."):
        doctest_namespace.update(request.getfixturevalue("_bridged"))
    elif node.name.startswith("oap_memory.client."):
        doctest_namespace.update(request.getfixturevalue("_contractor"))
    elif any("agent" in one.source for one in node.dtest.examples):
        doctest_namespace.update(request.getfixturevalue("_scout"))
