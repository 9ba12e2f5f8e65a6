"""GELU, found again in the arithmetic that it was written as.

    0.5 * x * (1 + erf(x * sqrt(0.5)))                                   GeluExact
    0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))      GeluApproximate

Factors and terms may stand in any order, and a division in the place of a multiplication.

Source: TensorFlow core/grappler/optimizers/remapper.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor

_DIGITS = 1e-6
"""How far constants may be off, relatively: float32 rounds them."""

_MOST_STEPS = 12
"""Operations that are looked at; more than any GELU has."""


class Gelu(NamedTuple):
    """A GELU: its name among fused ops, its argument, and its operations, in order."""

    name: str
    x: Tensor
    chain: list[Operation]


def find_gelu(editor: GraphEditor, function: Operation) -> Gelu | None:
    """The GELU that an Erf or Tanh is part of, if nothing else needs what lies between."""
    if function.type not in ("Erf", "Tanh"):
        return None
    last = function
    for _ in range(3):  # the addition, and one or two multiplications
        following = editor.only_consumer(last)
        if following is None:
            return None
        last = following[0]
        found = _gelu_at(editor, last) if last.type == "Mul" else None
        if found is not None:
            return found
    return None


def _gelu_at(editor: GraphEditor, last: Operation) -> Gelu | None:
    terms = _Terms(editor)
    coefficient, factors = terms.product(last.outputs[0])
    if not _is(coefficient, 0.5) or len(factors) != 2 or last in editor.feeds:
        return None
    for x, share in (factors, factors[::-1]):
        name = _name(terms, x, share)
        if name is not None:
            chain = [*(step for step in terms.steps if step is not last), last]
            return Gelu(name, x, chain) if _is_closed(editor, x, chain) else None
    return None


def _name(terms: _Terms, x: Tensor, share: Tensor) -> str | None:
    """Which GELU is half of `x` times `share`."""
    function = terms.beside(share, lambda one: terms.scalar(one) == 1)
    if function is None or function.op.type not in ("Erf", "Tanh"):
        return None
    terms.steps[function.op] = None
    coefficient, factors = terms.product(function.op.inputs[0])
    if function.op.type == "Erf":
        return "GeluExact" if _is(coefficient, math.sqrt(0.5)) and factors == [x] else None
    cubic = terms.beside(factors[0], lambda linear: linear is x) if len(factors) == 1 else None
    if cubic is None or not _is(coefficient, math.sqrt(2 / math.pi)):
        return None
    coefficient, factors = terms.product(cubic)
    return "GeluApproximate" if _is(coefficient, 0.044715) and factors == [x, x, x] else None


def _is(value: float, wanted: float) -> bool:
    return math.isclose(value, wanted, rel_tol=_DIGITS)


def _is_closed(editor: GraphEditor, x: Tensor, chain: list[Operation]) -> bool:
    """Whether the GELU alone reads `x` and the results in between, all on one device."""
    members, between = set(chain), [x.op, *chain[:-1]]
    return all(
        op.device == chain[-1].device
        and op not in editor.preserved
        and all(user in members for user, _ in op.consumer_edges())
        for op in between
    )


class _Terms:
    """Takes arithmetic apart.

    Attributes:
        steps: the operations that were; an ordered set.
    """

    def __init__(self, editor: GraphEditor) -> None:
        self._editor = editor
        self.steps: dict[Operation, None] = {}

    def scalar(self, tensor: Tensor) -> float | None:
        """The value of a scalar constant."""
        value = self._editor.free_value(tensor)
        return float(value) if value is not None and value.ndim == 0 else None

    def beside(self, tensor: Tensor, is_one: Callable[[Tensor], bool]) -> Tensor | None:
        """The other term of a sum."""
        if tensor.op.type in ("Add", "AddV2"):
            self.steps[tensor.op] = None
            for one, other in (tensor.op.inputs, tensor.op.inputs[::-1]):
                if is_one(one):
                    return other
        return None

    def product(self, tensor: Tensor) -> tuple[float, list[Tensor]]:
        """A tensor as a number times tensors."""
        value, op = self.scalar(tensor), tensor.op
        if value is not None:
            return value, []
        if len(self.steps) == _MOST_STEPS:
            return 1.0, [tensor]
        divisor = self.scalar(op.inputs[1]) if op.type == "RealDiv" else None
        if divisor:
            parts = [self.product(op.inputs[0]), (1 / divisor, [])]
        elif op.type in ("Mul", "Square"):
            parts = [self.product(factor) for factor in (op.inputs * 2)[:2]]
        else:
            return 1.0, [tensor]
        self.steps[op] = None
        return math.prod(number for number, _ in parts), [f for _, some in parts for f in some]
