"""Op histories: the successive definitions of each op, which every later one is held against.

A history is an OpList in which the definitions of an op follow one another, oldest first, and ops
are ordered by name. TensorFlow keeps one for each of its major versions.

Source: TensorFlow core/ops/compat/op_compatibility_lib.cc.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.compat.descriptions import remove_descriptions_from_op_def
from opkernel.opdef.compat.op_compatibility import (
    CompatibilityRule,
    OpChange,
    changed_added_defaults,
    changed_attr_defaults,
    changes_for_callers,
    incompatible_changes,
)
from opkernel.opdef.compat.op_revision import OpRevision
from opkernel.opdef.core.validate import validate_op_def
from opkernel.opdef.text.summary import summarize_op_def
from opkernel.proto import OpDef

_Rule = CompatibilityRule


class OpHistory(Mapping[str, Sequence[OpRevision]]):
    """The definitions of each op, oldest first; ops are ordered by name."""

    def __init__(self, revisions: Iterable[OpRevision] = ()) -> None:
        self._revisions: dict[str, list[OpRevision]] = {}
        for revision in revisions:
            self._revisions.setdefault(revision.name, []).append(revision)

    @classmethod
    def of(cls, op_defs: Iterable[OpDef]) -> "OpHistory":
        """A history of definitions in their order."""
        return cls(OpRevision(op_def) for op_def in op_defs)

    def __getitem__(self, op: str) -> Sequence[OpRevision]:
        return self._revisions[op]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._revisions))

    def __len__(self) -> int:
        return len(self._revisions)

    def revisions(self) -> Iterator[OpRevision]:
        """All definitions, in the order of a history file."""
        for op in self:
            yield from self._revisions[op]

    def newest(self) -> list[OpDef]:
        """The last definition of each op."""
        return [self._revisions[op][-1].op_def for op in self]

    def add(self, op_defs: Iterable[OpDef]) -> "OpSetComparison":
        """Append the definitions that are new or differ from the last one of their op.

        Documentation is left out. Ops of the history that are not among `op_defs` stay.

        Returns:
            The ops that were added and changed.

        Raises:
            InvalidArgumentError: one breaks graphs made for an earlier definition; nothing is
                added then.
        """
        by_name = {op_def.name: _undocumented(op_def) for op_def in op_defs}
        comparison = compare_with_history(self, by_name.values(), stable_ops=by_name)
        for change in comparison.changes:
            if change.rule.breaks_graphs:
                raise InvalidArgumentError(f"Incompatible Op change: {change.op}: {change.fact}")
        for name in (*comparison.added, *comparison.changed):
            self._revisions.setdefault(name, []).append(OpRevision(by_name[name]))
        return comparison


@dataclass
class OpSetComparison:
    """How a set of ops differs from a history.

    Attributes:
        added, changed: The names of the ops that are new, or differ from their last definition.
        changes: The changes that break graphs or callers.
    """

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    changes: list[OpChange] = field(default_factory=list)


def compare_with_history(
    history: OpHistory, op_defs: Iterable[OpDef], *, stable_ops: Collection[str] | None = None
) -> OpSetComparison:
    """Compare ops with all their earlier definitions, as TensorFlow does before a release.

    An op that equals its last definition passes, even if earlier definitions differ. Defaults are
    compared with the last definition only, also for attrs that the first one lacked. Ops whose names
    begin with `_` are internal, and are not compared.

    Args:
        history: the definitions up to now.
        op_defs: the ops now, in any order; documentation does not count.
        stable_ops: the names of the ops that are looked at; all of them if None.

    Raises:
        InvalidArgumentError: an op that is new or changed is no valid declaration.
    """
    now = {op.name: op for op in op_defs}
    names = [n for n in sorted(now.keys() | history.keys()) if not n.startswith("_")]
    comparison = OpSetComparison()
    for name in names if stable_ops is None else [n for n in names if n in stable_ops]:
        op_def = now.get(name)
        if name not in history:
            validate_op_def(now[name])
            comparison.added.append(name)
            continue
        last = history[name][-1].op_def
        if op_def is None:
            fact = f"Op removed: {summarize_op_def(last)}"
            comparison.changes.append(OpChange(_Rule.OP_REMOVED, fact, last, None))
        elif _undocumented_bytes(last) != _undocumented_bytes(op_def):
            validate_op_def(op_def)
            comparison.changed.append(name)
            earlier = [revision.op_def for revision in history[name]]
            comparison.changes += _changes_since(earlier, op_def)
    return comparison


def refused_steps(history: OpHistory) -> Iterator[tuple[OpRevision, OpChange]]:
    """The definitions of a history that its own earlier ones rule out.

    TensorFlow's own history holds some: integer types that ops such as Acos and Softplus no longer
    take. Its check does not meet them: it passes an op that equals its last definition.
    """
    for op in history:
        earlier: list[OpDef] = []
        for revision in history[op]:
            for change in _changes_since(earlier, revision.op_def) if earlier else ():
                if change.rule.breaks_graphs:
                    yield revision, change
            earlier.append(revision.op_def)


def _changes_since(earlier: Sequence[OpDef], op_def: OpDef) -> list[OpChange]:
    """The changes that break graphs or callers of earlier definitions; each once, at its latest."""
    first, last = earlier[0], earlier[-1]
    found: dict[tuple[_Rule, str], OpChange] = {}
    for change in chain(
        *(incompatible_changes(old, op_def) for old in reversed(earlier)),
        changed_attr_defaults(last, op_def),
        changed_added_defaults(first, last, op_def) if len(earlier) > 1 else (),
        changes_for_callers(last, op_def),
    ):
        found.setdefault((change.rule, change.part), change)
    return list(found.values())


def _undocumented_bytes(op_def: OpDef) -> bytes:
    return _undocumented(op_def).SerializeToString(deterministic=True)


def _undocumented(op_def: OpDef) -> OpDef:
    copy = OpDef()
    copy.CopyFrom(op_def)
    remove_descriptions_from_op_def(copy)
    return copy
