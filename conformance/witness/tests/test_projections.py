"""The portable cases of projections: what a level shows of an item."""

import time
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


class Spans(unittest.TestCase):
    def found(self, text: str) -> list[tuple[str, str]]:
        return [(span.cls, text[span.start : span.end]) for span in detect(text)]

    def test_one_of_each_class(self) -> None:
        for cls, text in (
            ("url_credentials", "postgres://bob:hunter2@db.example/x"),
            ("secret", "AKIAIOSFODNN7EXAMPLE"),
            ("iban", "DE89 3704 0044 0532 0130 00"),
            ("card", "4111 1111 1111 1111"),
            ("national_id", "078-05-1120"),
            ("email", "ann+x@b.example"),
            ("ip", "2001:db8::1"),
            ("phone", "+49 30 901820"),
            ("street_address", "12 Main Street"),
        ):
            with self.subTest(cls):
                self.assertEqual(self.found(text), [(cls, text)])
                self.assertEqual(self.found(f"see {text} there"), [(cls, text)])
        card = "4111 1111 1111 1111"
        for beside in ("192.0.2.7", "078-05-1120", "12 Main Street", "+49 30 901820", card):
            for text in (f"{card} {beside}", f"{beside} {card}"):
                with self.subTest(text):
                    shown = detect(text)
                    self.assertGreaterEqual(sum(span.end - span.start for span in shown), len(text) - 1)
        self.assertEqual(self.found("born on 12 March 1980"), [("date_of_birth", "12 March 1980")])
        self.assertEqual(self.found("at 10:30 on 2026-05-01, 42 times"), [])

    def test_other_digits_and_dashes_are_read_too(self) -> None:
        self.assertEqual(self.found("٤١١١ ١١١١ ١١١١ ١١١١"), [("card", "٤١١١ ١١١١ ١١١١ ١١١١")])

    def test_of_very_many_those_next_to_each_other_become_one(self) -> None:
        text = "a@b.example " * 100 + "4111 1111 1111 1111"
        spans = detect(text)
        self.assertEqual(len(spans), 32)
        self.assertEqual((spans[0].start, spans[-1].end), (0, len(text)))

    def test_long_texts_take_no_long_time(self) -> None:
        for piece in ("1", "a.", "_", "a@", "http://a:", "+1", "x@x.x", "A", "1-"):
            with self.subTest(piece):
                before = time.process_time()
                detect(piece * (65536 // len(piece)))
                self.assertLess(time.process_time() - before, 20)


if __name__ == "__main__":
    unittest.main()
