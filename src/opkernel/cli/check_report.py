"""The findings of `opkernel check`."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from opkernel.cli.output import counted
from opkernel.opdef import CompatibilityRule


@dataclass(frozen=True)
class Finding:
    """One change of an op, and the nodes that it breaks.

    Attributes:
        op: The op.
        rule: The rule that the change breaks.
        fact: The change.
        impact: For which graphs or callers it matters.
        file: The file that declares the op, or else the one that was checked.
        line: The line of the declaration; 0 where it is not known.
        hits: The nodes that are hit, by the graph's file; graphs without such nodes are left out.
    """

    op: str
    rule: CompatibilityRule
    fact: str
    impact: str
    file: Path
    line: int = 0
    hits: dict[str, list[str]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The file, from the working directory."""
        return os.path.relpath(self.file)

    @property
    def place(self) -> str:
        """`my_ops/conv.py:14`."""
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass(frozen=True)
class CheckReport:
    """The result of a check.

    Attributes:
        target, reference: The two sides of the comparison, in the user's words.
        reference_is_missing: Whether the target did not exist yet in the reference.
        ops: How many ops the target has.
        added, changed: The names of the ops that are new or changed.
        findings: The changes that break graphs or callers.
        graphs: The graphs that were looked into.
    """

    target: str
    reference: str
    reference_is_missing: bool
    ops: int
    added: list[str]
    changed: list[str]
    findings: list[Finding]
    graphs: list[str]

    @property
    def breaks_graphs(self) -> bool:
        """Whether a finding is about graphs."""
        return any(finding.rule.breaks_graphs for finding in self.findings)

    @property
    def verdict(self) -> str:
        """The result in a few words."""
        for_graphs = sum(finding.rule.breaks_graphs for finding in self.findings)
        for_callers = len(self.findings) - for_graphs
        parts = [
            f"{counted(number, 'change')} {'breaks' if number == 1 else 'break'} {whom}"
            for number, whom in ((for_graphs, "graphs"), (for_callers, "callers"))
            if number
        ]
        return ", ".join(parts) or "nothing breaks"

    @property
    def summary(self) -> str:
        """How many ops there are, and how many of them differ."""
        parts = [
            counted(self.ops, "op"),
            f"{len(self.added):,} new",
            f"{len(self.changed):,} changed",
        ]
        if self.reference_is_missing:
            parts.append(f"{self.target} is not there in {self.reference}")
        return ", ".join(parts)
