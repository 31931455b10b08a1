"""Evaluates every formula of docs/bytes.md over the examples of the page. Written from the page alone."""

import base64
import hashlib
import json
import re
import sys
import zlib
from datetime import datetime

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def canonical(value):
    """RFC 8785, for what the page holds: Python writes strings and short numbers as it asks."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join(canonical(name) + ":" + canonical(v) for name, v in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def octets(value):
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else canonical(value)).encode()


def text(value):
    return octets(value).decode()


def b64(value):
    return base64.urlsafe_b64encode(octets(value)).rstrip(b"=").decode()


def unb64(value):
    encoded = octets(value)
    return base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))


def verify(key, message, signature):
    try:
        Ed25519PublicKey.from_public_bytes(unb64(key)).verify(unb64(signature), octets(message))
    except InvalidSignature:
        return False
    return True


FUNCTIONS = {
    "jcs": lambda v, *names: canonical({k: x for k, x in v.items() if k not in map(text, names)} if names else v),
    "only": lambda v, *names: {text(name): v[text(name)] for name in names},
    "sha256": lambda v: "sha256:" + hashlib.sha256(octets(v)).hexdigest(),
    "digest": lambda v: b64(hashlib.sha256(octets(v)).digest()),
    "b64": b64,
    "unb64": unb64,
    "json": lambda v: json.loads(octets(v)),
    "part": lambda v, separator, n: text(v).split(json.loads(f'"{separator}"'))[int(text(n))],
    "cat": lambda *parts: b"".join(map(octets, parts)),
    "lines": lambda v, n: "".join(line + "\n" for line in text(v).split("\n")[: int(text(n))]),
    "inflate": lambda v: zlib.decompress(octets(v)),
    "bit": lambda v, n: octets(v)[int(text(n)) // 8] >> int(text(n)) % 8 & 1,
    "seconds": lambda v: int(datetime.fromisoformat(text(v).replace("Z", "+00:00")).timestamp()),
    "contains": lambda values, v: v in values,
    "public": lambda v: b64(Ed25519PrivateKey.from_private_bytes(unb64(v)).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)),
    "verify": verify,
}


def evaluate(tokens, blocks):
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
    arguments = [evaluate(tokens, blocks)]
    while tokens.pop(0) == ",":
        arguments.append(evaluate(tokens, blocks))
    return FUNCTIONS[token](*arguments)


def holds(line, blocks):
    tokens = re.findall(r'"[^"]*"|[A-Za-z0-9_./-]+|[(),=]', line)
    left = evaluate(tokens, blocks)
    if not tokens:
        return left is True
    assert tokens.pop(0) == "="
    return octets(left) == octets(evaluate(tokens, blocks)) and not tokens


def read(page):
    blocks, checks = {}, []
    for fence, name, body in re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", page, re.M | re.S):
        if fence == "check":
            checks += [line for line in body.splitlines() if line.strip()]
        elif name:
            blocks[name] = json.loads(body) if fence == "json" else body.removesuffix("\n")
    return blocks, checks


def main():
    with open(sys.argv[1], encoding="utf-8") as page:
        blocks, checks = read(page.read())
    wrong = 0
    for line in checks:
        try:
            outcome = None if holds(line, blocks) else "does not hold"
        except Exception as error:
            outcome = repr(error)
        if outcome:
            wrong += 1
            print(f"{line}: {outcome}", file=sys.stderr)
    print(f"docs/bytes.md: {len(blocks)} examples, {len(checks)} formulas, {wrong} wrong")
    return 1 if wrong or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
