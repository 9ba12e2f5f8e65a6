"""RandomProgram: loops and conditionals nested in each other, as a graph of TensorFlow 1 and as plain Python.

Values are int32 numbers modulo 97. A program is a list of statements; each adds values to those that are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st
from tests.runtime.dataflow.loop_builders import Builder

__all__ = ["Block", "blocks", "evaluate", "grow"]

_PRIME = 97
_OPS = {"AddV2": int.__add__, "Sub": int.__sub__, "Mul": int.__mul__}


@dataclass(frozen=True)
class Compute:
    """An operation on two values, by their places counted from the last."""

    op: str
    a: int
    b: int


@dataclass(frozen=True)
class Constant:
    value: int


@dataclass(frozen=True)
class Cond:
    """A block or another, as one value is less than another; each gets some values, and may see all."""

    a: int
    b: int
    inputs: tuple[int, ...]
    then: Block
    otherwise: Block


@dataclass(frozen=True)
class Loop:
    """Turns of a block on some values, with others that stay the same."""

    turns: int
    variables: tuple[int, ...]
    invariants: tuple[int, ...]
    body: Block


Statement: TypeAlias = "Compute | Constant | Cond | Loop"


@dataclass(frozen=True)
class Block:
    """Statements, and the places of the results."""

    statements: tuple[Statement, ...]
    results: tuple[int, ...]


_places = st.integers(0, 5)


def blocks(depth: int, results: int) -> st.SearchStrategy[Block]:
    """Blocks with so many results, nested so deeply."""
    plain = st.one_of(
        st.builds(Compute, st.sampled_from(sorted(_OPS)), _places, _places),
        st.builds(Constant, st.integers(0, 9)),
    )
    statement = plain
    if depth:
        inner = st.integers(1, 2).flatmap(lambda n: _nested(depth - 1, n))
        statement = st.one_of(plain, inner, inner)
    places = st.tuples(*[_places] * results)
    return st.builds(Block, st.lists(statement, min_size=1, max_size=4).map(tuple), places)


def _nested(depth: int, count: int) -> st.SearchStrategy[Statement]:
    inner, places = blocks(depth, count), st.tuples(*[_places] * count)
    return st.one_of(
        st.builds(Cond, _places, _places, places, inner, inner),
        st.builds(Loop, st.integers(0, 3), places, st.tuples(_places), inner),
    )


def _pick(known: Sequence[Any], place: int) -> Any:
    return known[-1 - place % len(known)]


def evaluate(block: Block, known: Sequence[int]) -> list[int]:
    """The results, given values."""
    known = list(known)
    for one in block.statements:
        known += _evaluated(one, known)
    return [_pick(known, place) for place in block.results]


def _evaluated(one: Statement, known: Sequence[int]) -> list[int]:
    if isinstance(one, Constant):
        return [one.value]
    if isinstance(one, Compute):
        return [_OPS[one.op](_pick(known, one.a), _pick(known, one.b)) % _PRIME]
    if isinstance(one, Cond):
        taken = one.then if _pick(known, one.a) < _pick(known, one.b) else one.otherwise
        return evaluate(taken, [*known[-2:], *(_pick(known, place) for place in one.inputs)])
    values = [_pick(known, place) for place in one.variables]
    fixed = [_pick(known, place) for place in one.invariants]
    for turn in range(one.turns):
        values = evaluate(one.body, [*fixed, turn, *values])
    return values


def grow(b: Builder, block: Block, known: Sequence[Any]) -> list[Any]:
    """The results as tensors, given tensors."""
    known = list(known)
    for one in block.statements:
        known += _grown(b, one, known)
    return [_pick(known, place) for place in block.results]


def _grown(b: Builder, one: Statement, known: Sequence[Any]) -> list[Any]:
    if isinstance(one, Constant):
        return [b.constant(one.value)]
    if isinstance(one, Compute):
        value = b.op(one.op, _pick(known, one.a), _pick(known, one.b))
        return [b.op("FloorMod", value, b.constant(_PRIME))]
    if isinstance(one, Cond):
        less = b.op("Less", _pick(known, one.a), _pick(known, one.b))
        seen = known[-2:]  # by no Switch

        def branch(block: Block) -> Any:
            def make(*inputs: Any) -> list[Any]:
                waiting = [_on_branch(b, tensor) for tensor in seen]
                results = grow(b, block, [*waiting, *inputs])
                return [_on_branch(b, tensor) for tensor in results]

            return make

        inputs = [_pick(known, place) for place in one.inputs]
        return b.cond(less, branch(one.then), branch(one.otherwise), inputs)
    values = [_pick(known, place) for place in one.variables]
    fixed = [_pick(known, place) for place in one.invariants]
    turns = one.turns

    def body(turn: Any, *inside: Any) -> list[Any]:
        variables, constants = inside[: len(values)], inside[len(values) :]
        constants = tuple(_on_branch(b, tensor) for tensor in constants)
        results = grow(b, one.body, [*constants, turn, *variables])
        return [b.op("AddV2", turn, b.constant(1)), *results]

    return b.while_loop(
        lambda turn, *_: b.op("Less", turn, b.constant(turns)),
        body,
        [b.constant(0), *values],
        fixed,
    )[1:]


def _on_branch(b: Builder, tensor: Any) -> Any:
    """A tensor as one that is alive on the branch that is being made, though no Switch gives it."""
    assert b.pivot is not None
    return b.operation("Identity", tensor, after=[b.pivot.op]).outputs[0]
