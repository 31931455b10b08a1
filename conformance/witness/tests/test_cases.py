"""The portable cases of grants, items, receipts and chains."""

import unittest
from collections.abc import Callable
from typing import Any

from tests.support import cases
from witness.grants import check_grant
from witness.keys import Documents, Invalid
from witness.ledger import check_chain, check_receipt
from witness.reader import check_item


class Portable(unittest.TestCase):
    def verdicts(self, name: str, check: Callable[[Any, Documents], None]) -> None:
        file = cases(name)
        documents = Documents(file["document"])
        for case in file["cases"]:
            with self.subTest(file=name, case=case["id"]):
                try:
                    check(case["input"], documents)
                    holds = True
                except Invalid:
                    holds = False
                self.assertEqual(holds, case["valid"], case["why"])

    def test_grants(self) -> None:
        self.verdicts("grants.json", check_grant)
        self.verdicts("grants-signed-anew.json", check_grant)

    def test_items(self) -> None:
        self.verdicts("items.json", check_item)

    def test_receipts(self) -> None:
        self.verdicts("receipts.json", check_receipt)

    def test_chains(self) -> None:
        self.verdicts("chains.json", check_chain)


if __name__ == "__main__":
    unittest.main()
