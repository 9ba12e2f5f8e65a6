"""The tree of operations that a graph with control flow of TensorFlow 1 becomes."""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.errors import UnimplementedError
from opkernel.graph import Operation
from opkernel.graph.core.loop_form import Variable
from opkernel.records import dataclass
from opkernel.runtime.plan.functionalize.contexts import Context, Predicate


class NotRaisedError(UnimplementedError):
    """The control flow of a graph has no form in Python: the dataflow executor runs it."""

    def __init__(self, reason: str, op: Operation) -> None:
        super().__init__(
            f"{op.type}: plans do not run this control flow, the dataflow executor does: {reason} "
            f"(node {op.name!r})",
            node=op.name,
            op=op.type,
        )


@dataclass(frozen=True, slots=True)
class Choose:
    """On this branch the value of a Merge is that input."""

    op: Operation
    index: int


@dataclass(frozen=True, slots=True)
class FirstAlive:
    """A Merge whose inputs stand in any contexts: its value is the first input that is alive."""

    op: Operation
    contexts: Sequence[Context | None]


@dataclass(frozen=True, slots=True)
class Conditional:
    """The items of each branch of a predicate."""

    predicate: Predicate
    branches: dict[int, list[Item]]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: `condition` in every turn, `body` where the test holds, `after` once where not."""

    variables: Sequence[Variable]
    test: Operation
    condition: list[Item]
    body: list[Item]
    after: list[Item]


Item = Operation | Choose | FirstAlive | Conditional | Loop


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A graph as a program.

    Attributes:
        items: What is run, in order.
        fetched_in: Where each fetch is alive; None for nowhere.
        predicates: The predicates that decide between branches; their places are their numbers.
    """

    items: Sequence[Item]
    fetched_in: Sequence[Context | None]
    predicates: Sequence[Predicate]
