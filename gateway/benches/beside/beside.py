"""The same conversations in this gateway and in other memories: how long it takes to write a turn, and to find it.

    beside.py --data DIR [--turns 1000] [--questions 100] [--seconds 1800] [--dir DIR] [--only NAME,...] [--json FILE]

`$OAP_MEMORY` is the program, of a release build. DIR has LoCoMo's conversations (`26.json`, ...); their licence keeps
them out of the project. README.md says how each memory is set up, what is measured, and what the figures do not say.
Who cannot be had is left out with a word. A Python with `mcp` 2.3.0 runs this; the others get environments of their own
in `${TMPDIR:-/tmp}/oap-interop/beside`.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import memories
from measured import Left, Measured, measure
from setups import AGENTS, SETUPS

HEAD = (
    "",
    "callers",
    "add ms",
    "add /s",
    "search ms",
    "search /s",
    "found",
    "turns",
    "identity",
    "scope",
    "proof",
    "receipt",
)
MOST = 500 * AGENTS
"""Calls of one run: within what all agents may ask in a minute, however fast they are."""
WORDS = {True: "yes", False: "no"}


def conversations(folder: Path) -> Iterator[tuple[str, dict]]:
    """LoCoMo's files, in the order of their numbers."""
    for file in sorted(folder.glob("*.json"), key=lambda file: file.name.zfill(20)):
        yield file.stem, json.loads(file.read_text())


def load(folder: Path, turns: int, questions: int) -> tuple[list[str], list[tuple[str, set[int]]]]:
    """The first turns, and questions that they answer, each with the turns that do."""
    texts: list[str] = []
    asked: list[tuple[str, set[int]]] = []
    for _, talk in conversations(folder):
        here: dict[str, int] = {}
        sessions = sorted((key for key in talk if key.startswith("session_") and isinstance(talk[key], list)), key=len)
        for turn in (turn for key in sessions for turn in talk[key]):
            if len(texts) < turns and turn.get("text"):
                here[turn["dia_id"]] = len(texts)
                texts.append(f"{turn['speaker']}: {turn['text']}")
        for question in talk["qa"]:
            evidence = {here[turn] for turn in question.get("evidence", ()) if turn in here}
            # Category 5 has no answer in the talk.
            if evidence and question["category"] != 5:
                asked.append((question["question"], evidence))
    if len(texts) < turns:
        raise SystemExit(f"--data: {len(texts)} turns there, not {turns}")
    # From all over the conversations, always the same.
    step = max(1, len(asked) // questions)
    return texts, asked[::step][:questions]


def row(one: Measured) -> tuple[str, ...]:
    """A line of the table."""
    add, search = one.add, one.search
    figures = (f"{add.median:.1f}", f"{add.rate:.1f}", f"{search.median:.1f}", f"{search.rate:.1f}", f"{one.found:.2f}")
    return (one.name, str(one.callers), *figures, str(one.turns), *(WORDS[can] for can in one.columns))


def table(rows: list[tuple[str, ...]]) -> str:
    """Columns as wide as they have to be; figures stand to the right."""
    widths = [max(len(cells[n]) for cells in rows) for n in range(len(HEAD))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        for cells in rows
    )


async def main() -> int:
    """Each memory in turn, alone on the machine."""
    parser = argparse.ArgumentParser(description="This gateway beside other memories")
    parser.add_argument("--data", type=Path, required=True, help="LoCoMo's conversations")
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1800, help="after which a memory is given no more turns")
    parser.add_argument(
        "--dir", type=Path, help="where the memories are made; the system's folder for what is temporary"
    )
    parser.add_argument("--only", default=",".join(SETUPS), help="names, with commas: " + ", ".join(SETUPS))
    parser.add_argument("--json", type=Path, help="where the figures go, too")
    options = parser.parse_args()
    if unknown := set(options.only.split(",")) - SETUPS.keys():
        parser.error(f"--only: there is no {', '.join(unknown)}; there are {', '.join(SETUPS)}")
    if options.turns + options.questions > MOST:
        parser.error(f"--turns: {MOST} calls at most, or the agents of our gateway may ask no more")
    texts, asked = load(options.data, options.turns, options.questions)
    print(f"{len(texts)} turns, {len(asked)} questions; {platform.machine()}, {os.cpu_count()} processors", flush=True)
    measured: list[Measured] = []
    for name in options.only.split(","):
        for setup in SETUPS[name]:
            with tempfile.TemporaryDirectory(dir=options.dir) as folder:
                try:
                    async with setup(Path(folder)) as memory:
                        measured.append(await measure(memory, texts, asked, options.seconds))
                        print(f"  {memory.name}: done", flush=True)
                except Left as why:
                    print(f"  {name}: left out, {why}", flush=True)
                    break
    print(table([HEAD, *map(row, measured)]))
    if options.json:
        options.json.write_text(json.dumps([one.as_json() for one in measured], indent=2) + "\n")
    ours = [one for one in measured if one.name.startswith(memories.OURS)]
    return 0 if ours or memories.OURS not in options.only else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
