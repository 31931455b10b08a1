"""What a gateway holds, in memory: keys, items, grants, receipts, used proofs (docs/protocol.md sections 0, 1 and 5)."""

import hashlib
import hmac
import secrets
import threading
from collections import defaultdict, deque
from typing import Any, NoReturn

from .canon import b64
from .gates import Gates
from .grants import Grant
from .items import Shelf
from .keys import Documents, Signer
from .ledger import Ledger
from .moments import Clock
from .rank import Cursors
from .tokens import Used

STATUS = {
    "invalid_input": 400,
    "auth_required": 401,
    "policy_block": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "too_large": 413,
    "rate_limited": 429,
    "budget_exhausted": 429,
    "internal_error": 500,
    "maintenance": 503,
    "storage_full": 507,
}
MAX_FAILED = 300
MAX_EXCHANGES = 60
MAX_AUDITS = 60
MAX_REFUSALS = 30
MAX_ANONYMOUS = 600
PLACES = 131_072


class Refused(Exception):
    """An answer that says no, with the codes of section 1. Its message never holds what was sent."""

    def __init__(self, code: str, message: str, status: int = 0, after: int = 0) -> None:
        super().__init__(message)
        self.code, self.message, self.status, self.after = code, message, status or STATUS[code], after


def refuse(code: str, message: str, after: int = 0) -> NoReturn:
    """`after` so many seconds it may be asked again."""
    raise Refused(code, message, after=after)


class Windows:
    """How often something happened in the last minute."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], deque[int]] = defaultdict(deque)

    def count(self, what: str, whose: str, now: int) -> int:
        times = self._at[(what, whose)]
        while times and times[0] <= now - 60_000:
            times.popleft()
        return len(times)

    def add(self, what: str, whose: str, now: int) -> None:
        self._at[(what, whose)].append(now)

    def take(self, what: str, whose: str, most: int, now: int) -> bool:
        """Counts one more, unless there were as many as may be."""
        if self.count(what, whose, now) >= most:
            return False
        self.add(what, whose, now)
        return True

    def room(self, what: str, whose: str, most: int, now: int) -> int:
        """In how many whole seconds there is room again."""
        over = self.count(what, whose, now) - most
        return 0 if over < 0 else -((now - 60_000 - self._at[(what, whose)][over]) // 1000)


class House:
    """One principal's gateway. Whoever changes or reads it holds `lock`."""

    def __init__(
        self,
        origin: str,
        signer: Signer,
        belief_threshold: float = 0.5,
        has_model: bool = False,
        stands_at: int | None = None,
    ) -> None:
        self.origin, self.signer, self.belief_threshold = origin, signer, belief_threshold
        self.has_model = has_model
        self.max_items, self.max_days, self.epsilon_per_grantee = 10_000, 180, 100
        self.clock = Clock(stands_at)
        self.ledger = Ledger(signer, self.clock)
        self.shelf = Shelf(signer, self.clock, self.ledger)
        self.documents = Documents()  # and the own one, once it is published
        self.retired: list[tuple[Signer, int]] = []  # former keys, oldest first, and since when
        self.used = Used()
        self.cursors = Cursors()
        self.windows = Windows()
        self.grants: dict[str, Grant] = {}
        self.gates = Gates()
        self.accounts: dict[str, int] = defaultdict(int)
        self.locked_down = False
        self.handovers: list[dict[str, Any]] = []
        self.heard: dict[tuple[str, str], dict[str, Any]] = {}  # letters, by sender and id
        self.asks: dict[tuple[str, str], Any] = {}
        self.links: dict[str, list[str]] = {}  # acknowledgements, by receipt: the hash of each link
        self.lock = threading.RLock()
        self.seen: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._places: set[int] = set()
        self._secret = secrets.token_bytes(32)

    def use(self, signer: Signer) -> None:
        """What is signed from here on is signed with this key."""
        self.signer = signer
        self.ledger.sign_with(signer)
        self.shelf.sign_with(signer)

    @property
    def did(self) -> str:
        return self.signer.did

    def keep(self, grant: Grant) -> None:
        self.grants[grant.hash] = grant

    def named(self, grant_id: str) -> list[Grant]:
        return [grant for grant in self.grants.values() if grant.grant_id == grant_id]

    def fresh_place(self) -> int:
        """A random place in the status list, so that it does not count grants."""
        while (place := secrets.randbelow(PLACES)) in self._places:
            pass
        self._places.add(place)
        return place

    def keyed(self, did: str) -> str:
        """A DID that was asserted and not proved is stored as a keyed hash (section 12)."""
        return "hmac-sha256:" + b64(hmac.digest(self._secret, did.encode(), hashlib.sha256))

    def block(self, grant: Grant, action: str, rule: str, code: str, message: str) -> NoReturn:
        """What the grant or a budget refuses leaves a receipt, at most 30 a minute."""
        if self.windows.take("refusal", grant.line[0].hash, MAX_REFUSALS, self.clock.now()):
            decision = {**grant.decision(), "outcome": "block", "rules": [rule]}
            self.ledger.write(self.shelf.chain_of(grant.scope), action, decision, agent_did=grant.grantee)
        raise Refused(code, message)
