"""The portable cases of projections: what a level shows of an item."""

import unittest

from tests.support import cases
from witness import profiles
from witness.detect import detect


class Projections(unittest.TestCase):
    def test_the_portable_cases(self) -> None:
        for case in cases("projections.json")["cases"]:
            with self.subTest(case["id"]):
                given = case["input"]
                spans = detect(given["item"]["content"].get("text", ""))
                shown = profiles.shows(given["profile"], given["level"], given["item"], spans, False)
                seen = profiles.visible(given["item"], spans, shown)
                self.assertEqual(seen == given["visible"], case["valid"])


if __name__ == "__main__":
    unittest.main()
