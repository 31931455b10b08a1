from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from oap_memory.encoding import b64, unb64
from oap_memory.keys import _SMALL, did_key, key_of_did, public_key, verify

P = 2**255 - 19
D = -121665 * pow(121666, P - 2, P) % P
ORDER = 2**252 + 27742317777372353535851937790883648493


def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    (x, y), (u, v) = a, b
    t = D * x * u * y * v % P
    return (x * v + y * u) * pow(1 + t, P - 2, P) % P, (y * v + x * u) * pow(1 - t, P - 2, P) % P


def root(n: int) -> int | None:
    x = pow(n, (P + 3) // 8, P)
    for candidate in (x, x * pow(2, (P - 1) // 4, P) % P):
        if candidate * candidate % P == n % P:
            return candidate
    return None


def test_the_points_of_small_order_are_those_that_eight_times_are_nothing() -> None:
    # Points of order eight, found from any point times the order of the group's large part.
    found: set[int] = set()
    y = 2
    while len(found) < 5:
        y += 1
        x = root((y * y - 1) * pow(D * y * y + 1, P - 2, P))
        if x is None:
            continue
        point, base, n = (0, 1), (x, y), ORDER
        while n:
            if n & 1:
                point = add(point, base)
            base, n = add(base, base), n >> 1
        for _ in range(8):
            found.add(point[1])
            point = add(point, (root_of(point), point[1]) if point == (0, 1) else point)
    assert found == _SMALL


def root_of(point: tuple[int, int]) -> int:
    return point[0]


@pytest.mark.parametrize("y", [*sorted(_SMALL), P, P + 1])
@pytest.mark.parametrize("sign", [0, 1])
def test_keys_that_do_not_count(y: int, sign: int) -> None:
    raw = (y | sign << 255).to_bytes(32, "little")
    assert public_key(b64(raw)) is None
    assert key_of_did(did_key(raw)) is None
    assert not verify(raw, b"", b64(bytes(64)))


def test_one_encoding_a_signature() -> None:
    secret = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    key, message = secret.public_key().public_bytes_raw(), b"message"
    signature = secret.sign(message)
    assert verify(key, message, b64(signature))
    beyond = int.from_bytes(signature[32:], "little") + ORDER
    assert not verify(key, message, b64(signature[:32] + beyond.to_bytes(32, "little")))
    text = b64(signature)
    assert not verify(key, message, text + "==")
    assert unb64(text[:-1] + chr(ord(text[-1]) + 1)) is None
