"""The client of RFC-0015's "SDK Semantics", against the real gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gateway import Gateway

from oap_memory import UsageError
from oap_memory.openintent import (
    Client,
    MemoryAccessError,
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
)


@pytest.fixture(scope="module")
def keys(office: Gateway) -> dict[str, str]:
    keys = {name: office.agent(name) for name in ("counter", "checker")}
    office.run("agent", "set", "counter", "--working", "3")
    return keys


@pytest.fixture
def client(office: Gateway, keys: dict[str, str]) -> Iterator[Client]:
    with Client(office.origin, keys["counter"], ca_file=office.ca_file) as client:
        yield client


def test_set_get_query(client: Client) -> None:
    assert client.memory.get("invoices", "state") is None
    made = client.memory.set("invoices", "state", {"total": 47}, tags=["batch"])
    assert (made.version, made.memory_type) == (1, "working")
    again = client.memory.set("invoices", "state", {"total": 48}, tags=["batch", "open"])
    assert (again.version, client.memory.get("invoices", "state")) == (2, {"total": 48})
    assert [entry.key for entry in client.memory.query("invoices", tags=["open"])] == ["state"]
    assert client.memory.query("invoices", tags=["none"]) == []
    assert client.memory.delete("invoices", "state")
    assert not client.memory.delete("invoices", "state")
    with pytest.raises(UsageError, match="limit"):
        client.memory.query(limit=0)


def test_the_four_errors(client: Client, office: Gateway, keys: dict[str, str]) -> None:
    client.memory.set("shared", "rule", {"n": 1}, memory_type="semantic")
    with Client(office.origin, keys["checker"], ca_file=office.ca_file) as other:
        assert other.memory.get("shared", "rule") == {"n": 1}
        with pytest.raises(MemoryAccessError):
            other.memory.set("shared", "rule", {"n": 2})
    with Client(office.origin, keys["counter"], ca_file=office.ca_file) as same:
        same.memory.set("shared", "rule", {"n": 2})
        with pytest.raises(MemoryConflictError) as conflict:
            client.memory.set("shared", "rule", {"n": 3})
        assert (conflict.value.current_version, conflict.value.current_value) == (2, {"n": 2})
        client.memory.set("shared", "rule", {"n": 3}, version=2)
        same.memory.delete("shared", "rule")
    with pytest.raises(MemoryNotFoundError):
        client.memory.set("shared", "rule", {"n": 4})
    for number in range(3):
        client.memory.set("full", str(number), {})
    with pytest.raises(MemoryCapacityError) as full:
        client.memory.set("full", "more", {})
    assert (full.value.current_count, full.value.max_capacity) == (3, 3)
