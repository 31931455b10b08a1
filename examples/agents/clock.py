"""A week that takes seconds: every program of the example goes by a clock that the example sets.

The gateway has no clock to set: it goes by its machine's. `libfaketime` stands between a program and that clock, here
before every program and Python itself, and reads from a file how far the two differ. Where it is not found the week has
one day.
"""

import os
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

MONDAY = datetime(2026, 6, 1, 8, tzinfo=UTC)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
STARTED = "OAP_EXAMPLE_CLOCK"
"""Set where the clock is: the seconds from the machine's time to Monday morning."""


def library() -> str | None:
    """Where `libfaketime` is: PyPI's package, or the distribution's."""
    found = [os.environ["LIBFAKETIME"]] if "LIBFAKETIME" in os.environ else []
    package = find_spec("libfaketime")
    if package and package.origin:
        found.append(str(Path(package.origin).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"))
    found += [f"/usr/lib/{kind}/faketime/libfaketime.so.1" for kind in ("x86_64-linux-gnu", "aarch64-linux-gnu")]
    return next((path for path in found if Path(path).exists()), None) if sys.platform == "linux" else None


class Week:
    """The days of the week, from Monday on."""

    def __init__(self) -> None:
        """On Monday: where there is a simulated clock, the program begins once more, under it."""
        self.simulated = STARTED in os.environ
        """Whether days pass at all."""
        path = library()
        if not self.simulated and path:
            file = tempfile.mkdtemp(prefix="oap-week-")
            offset = str(int((MONDAY - datetime.now(UTC)).total_seconds()))
            clock = {"FAKETIME_TIMESTAMP_FILE": f"{file}/clock", "FAKETIME_CACHE_DURATION": "0", STARTED: offset}
            # What waits, waits as long as ever.
            still = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
            set_to(f"{file}/clock", int(offset))
            environment = {**os.environ, **clock, **still, "LD_PRELOAD": path}
            os.execve(sys.executable, [sys.executable, *sys.argv], environment)

    def day(self, name: str) -> None:
        """Makes it the morning of a day that is not over."""
        if self.simulated:
            ahead = timedelta(days=DAYS.index(name)).total_seconds()
            set_to(os.environ["FAKETIME_TIMESTAMP_FILE"], int(os.environ[STARTED]) + int(ahead))
            # The library reads the file once in a second. Where it does so at every call, two threads at once read it
            # into one buffer, and one of them may find half of it there.
            time.sleep(1.1)

    def now(self) -> str:
        """The time that it is, as the gateway writes it."""
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def forget(self) -> None:
        """Takes the clock's file away."""
        if self.simulated:
            file = Path(os.environ["FAKETIME_TIMESTAMP_FILE"])
            file.unlink()
            file.parent.rmdir()


def set_to(file: str, seconds: int) -> None:
    """Writes the clock, all at once: other programs are reading it."""
    Path(f"{file}.new").write_text(f"{seconds:+}\n")
    Path(f"{file}.new").replace(file)
