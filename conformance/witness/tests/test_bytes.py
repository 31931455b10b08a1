"""The formulas of docs/bytes.md, with this program's own functions."""

import json
import re
import unittest
import zlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support import DOCS
from witness import canon, keys
from witness.moments import read_time


def octets(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else canon.jcs(value)


def text(value: Any) -> str:
    return octets(value).decode()


def _public(seed: Any) -> str:
    return keys.Signer.new(private=Ed25519PrivateKey.from_private_bytes(canon.unb64(text(seed)))).x


FUNCTIONS = {
    "jcs": lambda v, *names: canon.jcs(v, *map(text, names)),
    "only": lambda v, *names: {text(name): v[text(name)] for name in names},
    "sha256": lambda v: canon.sha256(octets(v)),
    "digest": lambda v: canon.digest(text(v)),
    "b64": lambda v: canon.b64(octets(v)),
    "unb64": lambda v: canon.unb64(text(v)),
    "json": lambda v: canon.read(octets(v)),
    "part": lambda v, separator, n: text(v).split(json.loads(f'"{separator}"'))[int(text(n))],
    "cat": lambda *parts: b"".join(map(octets, parts)),
    "lines": lambda v, n: "".join(line + "\n" for line in text(v).split("\n")[: int(text(n))]),
    "inflate": lambda v: zlib.decompress(octets(v)),
    "bit": lambda v, n: octets(v)[int(text(n)) // 8] >> int(text(n)) % 8 & 1,
    "seconds": lambda v: read_time(text(v)) // 1000,
    "contains": lambda values, v: v in values,
    "public": _public,
    "verify": lambda key, message, signature: keys.verify(text(key), octets(message), text(signature)),
}


def evaluate(tokens: list[str], blocks: dict[str, Any]) -> Any:
    """One term: a text, an example or a part of it, or a function of terms."""
    token = tokens.pop(0)
    if token.startswith('"'):
        return token[1:-1]
    if tokens[:1] != ["("]:
        name, *steps = token.split("/")
        value = blocks[name]
        for step in steps:
            value = value[int(step)] if isinstance(value, list) else value[step]
        return value
    tokens.pop(0)
    given = [evaluate(tokens, blocks)]
    while tokens.pop(0) == ",":
        given.append(evaluate(tokens, blocks))
    return FUNCTIONS[token](*given)


class Bytes(unittest.TestCase):
    def test_every_formula(self) -> None:
        page = (DOCS / "bytes.md").read_text()
        blocks: dict[str, Any] = {}
        formulas: list[str] = []
        for fence, name, body in re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            if fence == "check":
                formulas += [line for line in body.splitlines() if line.strip()]
            elif name:
                blocks[name] = canon.read(body) if fence == "json" else body.removesuffix("\n")
        self.assertGreater(len(formulas), 100)
        for formula in formulas:
            with self.subTest(formula):
                tokens = re.findall(r'"[^"]*"|[A-Za-z0-9_./-]+|[(),=]', formula)
                left = evaluate(tokens, blocks)
                if tokens:
                    self.assertEqual(tokens.pop(0), "=")
                    self.assertEqual(octets(left), octets(evaluate(tokens, blocks)))
                else:
                    self.assertIs(left, True)


class Strict(unittest.TestCase):
    def test_what_a_strict_reader_refuses(self) -> None:
        whole = '{"a": [1, -1.5e3, "\\u00e9", null, true]}'
        self.assertEqual(canon.jcs(canon.read(whole)).decode(), '{"a":[1,-1500,"é",null,true]}')
        for refused in (
            '{"a":1,"a":2}', '"\\ud800"', "9007199254740992", "9007199254740992.0", "1e20", "NaN", "[1,]", "1e400",
            "[" * 65 + "]" * 65, "[" + ",".join("0" * 90000) + "]", "\ufeff{}", "",
        ):  # fmt: skip
            with self.subTest(refused[:20]), self.assertRaises(canon.Malformed):
                canon.read(refused)
        self.assertEqual(canon.read("[" * 64 + "]" * 64)[0][0][0] is not None, True)
        self.assertEqual(canon.jcs(canon.read("1e21")), b"1e+21")


if __name__ == "__main__":
    unittest.main()
