"""Ranking as section 6 of docs/protocol.md has it."""

import unittest
from typing import Any

from witness.dates import named
from witness.rank import scores


def item(kind: str, at: str | None) -> dict[str, Any]:
    return {"kind": kind, "provenance": {"captured_at": at} if at else {}}


def rank(query: str, *items: tuple[str, str, str | None]) -> list[float]:
    """The scores of items: text, kind, and when each was captured."""
    found = scores(
        query,
        {str(n): text for n, (text, _, _) in enumerate(items)},
        {str(n): item(kind, at) for n, (_, kind, at) in enumerate(items)},
    )
    return [found.get(str(n), 0.0) for n in range(len(items))]


class Rank(unittest.TestCase):
    def test_a_question_counts_more_for_its_answer(self) -> None:
        minute = "2023-05-08T12:0{}:00Z".format
        talk = [(text, "conversation_turn", minute(n)) for n, text in enumerate(("x", "holiday", "Lisbon"))]
        before, itself, after = rank("holiday", *talk)
        self.assertGreater(itself, after)
        self.assertGreater(after, before)
        self.assertGreater(before, 0.0)

    def test_facts_and_distant_turns_have_no_context(self) -> None:
        facts = [("holiday", "fact", "2023-05-08T12:00:00Z"), ("Lisbon", "fact", "2023-05-08T12:00:00Z")]
        self.assertEqual(rank("holiday", *facts)[1], 0.0)
        distant = [(text, "conversation_turn", f"2023-05-08T{hour}:00:00Z") for text, _, _ in facts for hour in (12, 15)]
        self.assertEqual(rank("holiday", distant[0], distant[3])[1], 0.0)

    def test_a_turn_gains_by_its_day(self) -> None:
        for kind, gains in (("conversation_turn", True), ("fact", False)):
            one, other, _ = rank(
                "holiday Lisbon",
                ("holiday", kind, "2023-05-01T12:00:00Z"),
                ("holiday", kind, "2023-05-08T12:00:00Z"),
                ("Lisbon", kind, "2023-05-08T18:00:00Z"),
            )
            self.assertEqual(other > one, gains)

    def test_a_date_finds(self) -> None:
        items = [("tea", "fact", "2023-05-08T12:00:00Z"), ("tea", "fact", "2022-06-08T12:00:00Z"), ("tea", "fact", None)]
        for query, found in (("in May", [0]), ("May 2022", [1]), ("June 8th", [1]), ("8 May 1984", []), ("1970-01-01", []), ("last week", [])):
            self.assertEqual([n for n, score in enumerate(rank(query, *items)) if score > 0], found, query)

    def test_dates_of_questions(self) -> None:
        for query, dates in (
            ("on 8 May, 2023?", [(0, 5, 8), (0, 5, 0), (2023, 0, 0)]),
            ("notes of 2023-05-08.", [(0, 5, 0), (0, 5, 8), (2023, 0, 0)]),
            ("What may June march for?", []),
            ("2023-99", [(2023, 0, 0)]),
        ):
            self.assertEqual(named(query), dates)


if __name__ == "__main__":
    unittest.main()
