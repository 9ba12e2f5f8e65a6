"""Finding: what a program has found out about its steps, as `Session.report` tells it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, MutableSequence, Sequence

from opkernel.logs import logger
from opkernel.records import dataclass


@dataclass(frozen=True)
class Finding:
    """What was tried for some steps, and what was chosen.

    Attributes:
        strategy: Who tried: `shapes`, `variables`, `branches` or `engines`.
        fetches: The tensors and operations that the steps compute.
        steps: Which steps of these: those that are fed certain shapes, say.
        tried: What ran the steps meanwhile, each with the median of the seconds that steps took; None where nothing was measured.
        chosen: What runs them now.
        since: The first of the steps that the chosen one has run.
        error: Why there is nothing to choose from; empty where nothing failed.
    """

    strategy: str
    fetches: Sequence[str]
    steps: str
    tried: Mapping[str, float | None]
    chosen: str
    since: int
    error: str = ""

    def __str__(self) -> str:
        others = self.tried if self.tried.keys() - {self.chosen} else {}
        tried = [
            name if seconds is None else f"{name} {seconds * 1e3:.3f} ms"
            for name, seconds in others.items()
        ]
        facts = [self.strategy, *([f"tried {', '.join(tried)}"] if tried else []), self.error]
        return (
            f"{', '.join(self.fetches)} {self.steps}: {self.chosen} since step {self.since} "
            f"({'; '.join(filter(None, facts))})"
        )


def note(findings: MutableSequence[Finding], finding: Finding) -> None:
    """Add a finding, and log it; where nobody has loaded `logging`, nobody reads a log."""
    findings.append(finding)
    if "logging" in sys.modules:
        logger("opkernel.optimization").info("%s", finding)
