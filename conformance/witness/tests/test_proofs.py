"""The portable cases of what is signed by grantees too: grants at a time, and delegations."""

import unittest
from typing import Any

from tests.support import cases, patched
from witness.canon import Malformed
from witness.grants import Grant, check_grant, check_line
from witness.keys import Documents, Invalid
from witness.moments import read_time

# "for ever" is refused by a bound on the duration that docs/protocol.md leaves to the manifest.
NOT_STATED = {"for ever"}


def _delegation(given: Any, documents: Documents, now: int) -> None:
    line = [*given["ancestors"], given["grant"]]
    check_grant(line[0], documents, now)
    check_line([Grant(one) for one in line], documents)


class Proofs(unittest.TestCase):
    def verdicts(self, name: str, check: Any) -> None:
        file = cases(name)
        now = read_time(file["now"])
        for case in file["cases"]:
            if case["id"] in NOT_STATED:
                continue
            with self.subTest(file=name, case=case["id"]):
                given = patched(file["bases"][str(case["base"])], case["patch"])
                try:
                    check(given, Documents(*case.get("documents", file["documents"])), now)
                    holds = True
                except (Invalid, Malformed):
                    holds = False
                self.assertEqual(holds, case["valid"], case.get("check"))

    def test_grants(self) -> None:
        self.verdicts("proof-grants.json", check_grant)

    def test_delegations(self) -> None:
        self.verdicts("proof-delegations.json", _delegation)


if __name__ == "__main__":
    unittest.main()
