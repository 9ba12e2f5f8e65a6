"""A compiled plan as a tree: the form in which plans are built, kept and handed on.

`CompiledPlan.tree` gives it. `text` makes the text that Python compiles, and `opkernel decompile` prints a
program. Any further form of a graph is one more walk over the tree. The tree holds all that the text says.

    PlanTree              arguments, statements and results; the meanings of names
      Call                results = function(*arguments)
        PlacedCall           which may write its result over an operand that dies
        ForwardingCall      which gets the last references to its inputs
          AwaitedCall         whose kernel may wait
        TiledCall           which computes a group of nodes where they are big, and else gives None
        FunctionCall        of functions of the graph's library: a call, an If, a Case or a While
      OperatorCall        result = x + y
      Assign              targets = values
      CheckScalar         raises InvalidArgumentError unless a local is a scalar
      Branches            if, elif, else
      While               a loop

Back ends may take any Call for a plain one: the kinds of calls only make plans fast. A FunctionCall and a
TiledCall also say what is called.

A name (`Name`) stands for a local of the plan, for `step`, the step that runs, or for one of
`PlanTree.globals`. It is an identifier of ASCII. A local is set before it is read, on the same branches
or on all. `releases` of a statement names the locals that the plan lets go behind it: nothing reads them
any more. A program chooses other names: `names_in` lists those of a part of the tree, `renamed` copies it
with others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Literal, TypeVar, cast

from opkernel.graph import Operation
from opkernel.kernel import OpKernel
from opkernel.records import dataclass, field

Name = str
"""A local of the plan, `step`, or a global."""

Path = frozenset[tuple[int, int]]
"""The branches taken: predicates by their numbers, each with its branch."""

Kind = Literal["constant", "kernel", "function", "service"]


class Node:
    """The nodes of a tree."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Global(Node):
    """The meaning of a name that is no local.

    Attributes:
        value: The object.
        kind: `constant`, the value of a node, or what else a plan takes as it is; `kernel`, a function
            that computes nodes: of their inputs, or of the step and a tuple of the inputs; `function`,
            of the graph's library, or a `Loop` or `Choice` of such; `service`, what plans need beside
            these (`services`), of which the hint is its name there.
        kernel: The first kernel with this function. A FunctionKernel tells the registered object and the
            attrs that are filled in (`registered`, `attrs`).
    """

    value: Any
    kind: Kind
    kernel: OpKernel | None = None


@dataclass(slots=True, eq=False)
class Plain(Node):
    """A string, a number or None."""

    value: str | int | None


@dataclass(slots=True, eq=False)
class Apply(Node):
    """The result of a service."""

    function: Name
    arguments: Sequence[Expression]


@dataclass(slots=True, eq=False)
class Condition(Node):
    """Whether a value is true, or stands in a relation to another.

    Attributes:
        value: The value, which is a scalar.
        relation: `==`, `is` or `is not`; none if the value decides, `not` if it does by being false.
        other: What it is compared with.
        check: The service that raises unless the value is a scalar; none if it is empty.
    """

    value: Expression
    relation: str = ""
    other: Expression = ""
    check: Name = ""


@dataclass(slots=True, eq=False)
class Select(Node):
    """A value where all tests hold, else another, which is then all that is looked at."""

    tests: Sequence[Condition]
    value: Expression
    otherwise: Expression


Expression = Name | Plain | Apply | Condition | Select | Sequence["Expression"]
"""A sequence is one argument of several tensors: a list where an op declares one, else a tuple."""

Results = Name | tuple[Name | tuple[Name, ...], ...]
"""Where values go: one value to a name, a tuple to several; a list among them to a tuple of names."""


@dataclass(slots=True, eq=False)
class _TreeItem(Node):
    """The fields of all statements.

    Attributes:
        op: The node that it computes, or that decides in it; None for what no node asks for.
        inputs: The names that hold the inputs of the node, for reports of errors; empty where one is
            never computed.
        reads: The locals that it reads: of statements with others in them, by their tests.
        releases: The locals that nothing reads after it.
    """

    op: Operation | None
    inputs: Sequence[Name]
    reads: Sequence[Name] = field(default=(), init=False)
    releases: Sequence[Name] = field(default=(), init=False)


@dataclass(slots=True, eq=False)
class Statement(_TreeItem):
    """A statement without others in it.

    Attributes:
        sets: The locals that it sets.
    """

    sets: Sequence[Name]


@dataclass(slots=True, eq=False)
class Call(Statement):
    """`results = function(*arguments)`.

    Attributes:
        function: The global that is called; between functions of one plan, one of these.
        arguments: What it is given; `step` is the first where it wants that.
        results: What becomes of its value; empty if nothing does.
    """

    function: Name
    arguments: Sequence[Expression]
    results: Results


@dataclass(slots=True, eq=False)
class PlacedCall(Call):
    """A Call of an element-wise function of arrays, whose result may take the place of an operand.

    Attributes:
        places: The operands of the result's shape and type that nobody else sees. The result may be
            written over the first of them that dies here.
        by_keyword: Whether the function takes that operand as `out`, or else as its last argument.
    """

    places: Sequence[Name] = ()
    by_keyword: bool = False


@dataclass(slots=True, eq=False)
class ForwardingCall(Call):
    """A Call of the step and of a list of the inputs, for a kernel that may take buffers over.

    Attributes:
        box: The local that is the list. The locals of `reads` that die here die before the call.
    """

    box: Name = ""


@dataclass(slots=True, eq=False)
class AwaitedCall(ForwardingCall):
    """A call of an `AwaitedKernel`, whose outputs the plan asks its caller for where it has to wait."""


@dataclass(slots=True, eq=False)
class TiledCall(Call):
    """A Call that computes element-wise nodes together, on tiles.

    Branches that compute them one by one, where it gave None, follow on it.

    Attributes:
        sized: It is made where these have so many elements; else the results are None.
        least: How many that is.
        width: The number of nodes.
    """

    sized: Sequence[Name] = ()
    least: int = 0
    width: int = 0


@dataclass(slots=True, eq=False)
class FunctionCall(Call):
    """A Call of a function of the graph's library, or of a `Loop`, on the step and its arguments.

    Attributes:
        test: Where there is one, the function is called only where it holds.
        otherwise: The function that is called where it does not.
        index: Where there is one, the function that is called is that which `function`, a `Choice`,
            gives for the value of this name.
        watcher: The service that makes of the function one under watch; none if it is empty.
    """

    test: Expression = ""
    otherwise: Name = ""
    index: Name = ""
    watcher: Name = ""


@dataclass(slots=True, eq=False)
class OperatorCall(Statement):
    """An operator on its operands: `x + y`, or `-x`."""

    operator: str
    operands: Sequence[Expression]


@dataclass(slots=True, eq=False)
class Assign(Statement):
    """Values for the names that it sets, all at once.

    Attributes:
        values: The values.
        is_turn: Whether it gives the variables of a loop the values for the next turn.
    """

    values: Sequence[Expression]
    is_turn: bool = False


@dataclass(slots=True, eq=False)
class CheckScalar(Statement):
    """Raises InvalidArgumentError unless a name holds a scalar.

    Attributes:
        name: The name.
        check: The service that raises.
    """

    name: Name
    check: Name


@dataclass(slots=True, eq=False)
class Branch(Node):
    """The statements that run if a test holds; without a test, if no other test does.

    `releases` are the locals that are needed on other branches only: they are let go first.
    """

    test: Expression | None
    path: Path
    block: Block
    releases: Sequence[Name] = ()


@dataclass(slots=True, eq=False)
class Branches(_TreeItem):
    """An `if` statement: the first branch whose test holds is run.

    Attributes:
        branches: The branches.
    """

    branches: list[Branch]


@dataclass(slots=True, eq=False)
class While(_TreeItem):
    """A loop: in every turn `condition`, a way out unless `test` holds, the step's deadline, `body`.

    Attributes:
        test: What is tested.
        condition: What is run in every turn.
        body: What is run where the test holds.
        path: The branches that the loop stands on.
        within: The service that gives the context manager that it runs in; none if it is empty.
        body_releases: The locals that only the way out would need.
    """

    test: Expression
    condition: Block
    body: Block
    path: Path
    within: Name = ""
    body_releases: Sequence[Name] = ()

    @property
    def variables(self) -> Sequence[Name]:
        """The locals that it hands on from turn to turn, and to the statements after it."""
        last = self.body[-1] if self.body else None
        return last.sets if isinstance(last, Assign) and last.is_turn else ()


Item = Statement | Branches | While
Block = list[Item]


@dataclass(slots=True, eq=False)
class PlanFunction(Node):
    """One function of a plan.

    Attributes:
        name: Its name.
        parameters: The locals that are given: `step` and others.
        block: What it does.
        results: The names of what it returns.
        unset: The locals that are None until they are set.
        cleared: The locals that are set to None where others are let go.
    """

    name: Name
    parameters: Sequence[Name]
    block: Block
    results: Sequence[Name]
    unset: Sequence[Name] = field(default=(), init=False)
    cleared: frozenset[Name] = field(default=frozenset(), init=False)


@dataclass(slots=True, eq=False)
class PlanTree(PlanFunction):
    """A plan: one function, however large. Its parameters are the step and the feeds.

    Attributes:
        globals: What the names stand for that are no locals.
        hints: What names were made of, where they differ: the names of nodes, mostly.
        uses_step: Whether anything looks at the step; if nothing does, any step will do.
    """

    globals: Mapping[Name, Global]
    hints: Mapping[Name, str]
    uses_step: bool


def blocks_of(item: Item) -> list[Block]:
    """The blocks that stand in an item."""
    if isinstance(item, Branches):
        return [branch.block for branch in item.branches]
    return [item.condition, item.body] if isinstance(item, While) else []


def statements(block: Block) -> Iterator[Statement]:
    """All statements in a block, and in the blocks in it."""
    for item in block:
        if isinstance(item, Statement):
            yield item
        else:
            for inner in blocks_of(item):
                yield from statements(inner)


def names_set(block: Block, found: dict[Name, None] | None = None) -> dict[Name, None]:
    """The locals that a block sets, in order; added to those found before."""
    found = {} if found is None else found
    for item in block:
        if isinstance(item, Statement):
            for name in item.sets:
                found[name] = None
        else:
            for inner in blocks_of(item):
                names_set(inner, found)
    return found


_T = TypeVar("_T")


def names_in(part: Any) -> Iterator[Name]:
    """The names that a part of a tree has, over and over; other texts may be among them."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, list | tuple | frozenset):
        for one in part:
            yield from names_in(one)
    elif isinstance(part, Node) and not isinstance(part, Plain):
        for name in _fields(part):
            if name != "inputs":  # of the node, wherever the statement has them from
                yield from names_in(getattr(part, name))


def renamed(part: _T, names: Mapping[Name, Name]) -> _T:
    """A copy of a part of a tree, with some names replaced by others."""
    found: Any = part
    if isinstance(part, str):
        found = names.get(part, part)
    elif isinstance(part, list | tuple | frozenset):
        found = type(part)([renamed(one, names) for one in part])
    elif isinstance(part, Node) and not isinstance(part, Plain):
        found = copy(part)
        for name in _fields(part):
            setattr(found, name, renamed(getattr(part, name), names))
    return cast(_T, found)


def _fields(part: Node) -> list[str]:
    return [name for cls in type(part).__mro__ for name in vars(cls).get("__slots__", ())]
