"""A campaign: cases drawn from seeds, one after the other, until the time is over.

A case is a function of its random numbers alone, which follow from the campaign, the seed and the
case's number: so a finding is repeated by that number.
"""

import contextlib
import random
import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType

from opkernel.errors import OpError

__all__ = ["SECONDS_A_CASE", "Case", "Finding", "Report", "run_campaign"]

Case = Callable[[random.Random], str]
"""Runs one case and gives its outcome in a word; raises Finding, or lets a fault through."""

SECONDS_A_CASE = 20
_BYTES_A_CASE = 1 << 30


class Finding(AssertionError):
    """What a case shows to be wrong."""


@dataclass
class Report:
    """What a campaign saw.

    Attributes:
        outcomes: How many cases ended how.
        findings: The cases that showed a fault, and their tracebacks.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: dict[int, str] = field(default_factory=dict)

    def __str__(self) -> str:
        cases = sum(self.outcomes.values())
        words = ", ".join(f"{count:,} {word}" for word, count in self.outcomes.most_common())
        return f"{cases:,} cases: {words}; {len(self.findings)} findings"


def run_campaign(
    name: str,
    case: Case,
    seed: int,
    seconds: float,
    numbers: Iterator[int],
    most_findings: int,
    seconds_a_case: int = SECONDS_A_CASE,
) -> Report:
    """Run cases until the time or the numbers are used up, or there are many findings."""
    report, end = Report(), time.monotonic() + seconds
    for number in numbers:
        if time.monotonic() > end or len(report.findings) >= most_findings:
            break
        rng = random.Random(f"{name} {seed} {number}")
        outcome = _run(case, rng, number, report, seconds_a_case)
        report.outcomes[outcome] += 1
    return report


def _run(case: Case, rng: random.Random, number: int, report: Report, seconds: int) -> str:
    before = _peak_bytes()
    try:
        with _time_limit(seconds):
            outcome = case(rng)
            if _peak_bytes() - before > _BYTES_A_CASE:
                raise Finding(f"{(_peak_bytes() - before) >> 20} MiB were allocated")
    except OpError as error:
        return error.code.name
    except Finding as finding:
        report.findings[number] = str(finding)
        return "finding"
    except KeyboardInterrupt:
        raise
    except BaseException:  # whatever escapes is what campaigns look for, SystemExit too
        report.findings[number] = traceback.format_exc(limit=-4)
        return "finding"
    return outcome


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@contextlib.contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    """Raise Finding in what takes longer than a case may; native code is let end first."""

    def too_slow(signum: int, frame: FrameType | None) -> None:
        raise Finding(f"took longer than {seconds} s")

    earlier = signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier)
