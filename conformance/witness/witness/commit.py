"""One SD-JWT a version of an item (docs/protocol.md section 4.1, docs/bytes.md section 4.1)."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .canon import Malformed, b64, digest, jcs, read, sha256, unb64
from .detect import CLASSES, Span
from .keys import Documents, Invalid, Jwt, Signer

TYP = "oap-memory-item+sd-jwt"
CLEAR = {"iss", "iat", "item_id", "seq", "event", "prev", "receipt", "_sd", "_sd_alg"}
CONCEALED = (
    "scope_id", "kind", "subject_entity_id", "content", "embedding", "provenance", "labels", "ttl_days", "expires_at",
    "exportable", "sensitivity", "derived_from", "extensions",
)  # fmt: skip
MAX_DISCLOSURES = 4096
Path = tuple[str | int, ...]


@dataclass
class Part:
    """A disclosure and those below it. `path` is where its value stands in the item."""

    path: Path
    disclosure: str
    below: list["Part"] = field(default_factory=list)

    def walk(self) -> Iterator["Part"]:
        yield self
        for part in self.below:
            yield from part.walk()


@dataclass
class Commitment:
    """The issuer JWT and every disclosure of it."""

    jwt: str
    parts: list[Part]

    @property
    def hash(self) -> str:
        return sha256(self.jwt)

    def show(self, shown: Callable[[Path], bool]) -> str:
        """The SD-JWT with what is shown, and the containers around it."""

        def pick(part: Part) -> list[str]:
            below = [text for each in part.below for text in pick(each)]
            return [part.disclosure, *below] if below or shown(part.path) else []

        chosen = [text for part in self.parts for text in pick(part)]
        return "~".join([self.jwt, *chosen, ""])


def _decoys(digests: list[str], least: int = 8) -> list[str]:
    missing = max(least - len(digests), -len(digests) % 8)
    return digests + [b64(secrets.token_bytes(32)) for _ in range(missing)]


def _seal(path: Path, *said: Any) -> tuple[str, Part]:
    part = Part(path, b64(jcs([b64(secrets.token_bytes(16)), *said])))
    return digest(part.disclosure), part


def _object(value: dict[str, Any], path: Path, least: int = 8) -> tuple[dict[str, Any], list[Part]]:
    """The digests of an object's members, sorted and filled with decoys to a multiple of 8."""
    digests, parts = [], []
    for name in sorted(value):
        inner, below = _conceal(value[name], (*path, name))
        one, part = _seal((*path, name), name, inner)
        part.below = below
        digests.append(one)
        parts.append(part)
    return {"_sd": sorted(_decoys(digests, least))}, parts


def _array(values: list[Any], path: Path) -> tuple[list[Any], list[Part]]:
    """The digests of an array's elements in their order, and decoys at its end."""
    digests, parts = [], []
    for place, value in enumerate(values):
        inner, below = _conceal(value, (*path, place))
        one, part = _seal((*path, place), inner)
        part.below = below
        digests.append(one)
        parts.append(part)
    return [{"...": one} for one in _decoys(digests)], parts


def _conceal(value: Any, path: Path) -> tuple[Any, list[Part]]:
    if isinstance(value, Segment):
        hidden, parts = _object({"v": value.text}, path)
        return {"t": value.cls, **hidden}, parts
    if isinstance(value, dict) and value:
        return _object(value, path)
    if isinstance(value, list) and value:
        return _array(value, path)
    return value, []


@dataclass(frozen=True)
class Segment:
    """A span of the text that a detector found."""

    cls: str
    text: str


def segments(text: str, spans: list[Span]) -> list[str | Segment]:
    """A text as plain runs and spans."""
    out: list[str | Segment] = []
    at = 0
    for span in spans:
        if span.start > at:
            out.append(text[at : span.start])
        out.append(Segment(span.cls, text[span.start : span.end]))
        at = span.end
    return out + ([text[at:]] if at < len(text) else [])


def commit(signer: Signer, claims: dict[str, Any], clear: dict[str, Any], spans: list[Span]) -> Commitment:
    """Signs the seven claims in the clear; conceals the others, containers too, each with a salt of its own."""
    claims = dict(claims)
    if "text" in claims["content"]:
        claims["content"] = {**claims["content"], "text": segments(claims["content"]["text"], spans)}
    digests, parts = _object(claims, (), 16)
    return Commitment(signer.jwt(TYP, {**clear, "_sd_alg": "sha-256", **digests}), parts)


# -- reading ---------------------------------------------------------------------------------------------------------


class _Reader:
    """Puts disclosures where their digests stand, and refuses any other form."""

    def __init__(self, disclosures: list[str]) -> None:
        if len(disclosures) > MAX_DISCLOSURES or len(set(disclosures)) != len(disclosures):
            raise Invalid("a disclosure stands once")
        self.left = {digest(text): text for text in disclosures}
        self.seen: set[str] = set()

    def _take(self, one: Any, length: int) -> list[Any] | None:
        if not isinstance(one, str) or len(unb64(one)) != 32 or one in self.seen:
            raise Invalid("a digest of 32 bytes that stands once")
        self.seen.add(one)
        text = self.left.pop(one, None)
        if text is None:
            return None
        said = read(unb64(text))
        if not isinstance(said, list) or len(said) != length or b64(jcs(said)) != text:
            raise Invalid("a disclosure of another form")
        if not isinstance(said[0], str) or len(unb64(said[0])) != 16:
            raise Invalid("a salt of 16 bytes")
        return said[1:]

    def members(self, digests: Any, least: int) -> dict[str, Any]:
        if not isinstance(digests, list) or len(digests) < least or len(digests) % 8 or digests != sorted(digests):
            raise Invalid("digests are sorted and filled")
        out: dict[str, Any] = {}
        for one in digests:
            said = self._take(one, 3)
            if said is None:
                continue
            name, value = said
            if not isinstance(name, str) or name in out or name in ("_sd", "...", "_sd_alg"):
                raise Invalid("a member once")
            out[name] = value
        return out

    def value(self, value: Any) -> Any:
        if isinstance(value, dict) and value:
            if set(value) != {"_sd"}:
                raise Invalid("members are concealed")
            return {name: self.value(inner) for name, inner in self.members(value["_sd"], 8).items()}
        if isinstance(value, list) and value:
            return [self.value(said[0]) for said in self.elements(value)]
        return value

    def elements(self, array: list[Any]) -> list[list[Any]]:
        if len(array) % 8 or any(not isinstance(e, dict) or set(e) != {"..."} for e in array):
            raise Invalid("elements are concealed")
        taken = (self._take(element["..."], 2) for element in array)
        return [said for said in taken if said is not None]

    def text(self, value: Any) -> str:
        if not isinstance(value, list) or not value:
            raise Invalid("a text is segments")
        return "".join(self.segment(said[0]) for said in self.elements(value))

    def segment(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        if not isinstance(value, dict) or set(value) != {"t", "_sd"} or value["t"] not in CLASSES:
            raise Invalid("a segment of another form")
        shown = self.members(value["_sd"], 8)
        if set(shown) - {"v"} or not isinstance(shown.get("v", ""), str) or len(value["_sd"]) != 8:
            raise Invalid("a segment of another form")
        return shown.get("v", f"[{value['t']}]")


def read_commitment(sd_jwt: object, documents: Documents) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The claims in the clear, what is disclosed, and the commitment of an SD-JWT whose signature and form hold."""
    try:
        if not isinstance(sd_jwt, str) or not sd_jwt.endswith("~"):
            raise Invalid("an SD-JWT ends with a tilde")
        issuer, *disclosures = sd_jwt.split("~")[:-1]
        jwt = Jwt.read(issuer, TYP) if len(issuer) <= 16384 else None
        if jwt is None or set(jwt.claims) != CLEAR or jwt.claims["_sd_alg"] != "sha-256":
            raise Invalid("seven claims are in the clear and no others")
        kid = str(jwt.header.get("kid"))
        if kid.partition("#")[0] != jwt.claims["iss"]:
            raise Invalid("the key is not the issuer's")
        jwt.signed_by(documents.key(kid, jwt.seconds("iat") * 1000))
        reader = _Reader(disclosures)
        shown = reader.members(jwt.claims["_sd"], 16)
        if set(shown) - set(CONCEALED):
            raise Invalid("a claim of another name")
        content = shown.pop("content", None)
        disclosed = {name: reader.value(value) for name, value in shown.items()}
        if content is not None:
            disclosed["content"] = _content(reader, content)
        if reader.left:
            raise Invalid("no digest asks for a disclosure")
        return jwt.claims, disclosed, sha256(issuer)
    except (Malformed, KeyError) as error:
        raise Invalid("the SD-JWT does not hold") from error


def _content(reader: _Reader, value: Any) -> Any:
    if not isinstance(value, dict) or set(value) != {"_sd"}:
        return reader.value(value)
    inner = reader.members(value["_sd"], 8)
    return {name: reader.text(v) if name == "text" else reader.value(v) for name, v in inner.items()}
