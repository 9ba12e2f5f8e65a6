"""Contexts: conjunctions of branches, and when some of them make up one."""

import pytest
from tests.runtime.dataflow.loop_builders import BOOL, Builder

from opkernel.runtime.plan.v1_control_flow import (
    ALWAYS,
    BranchPredicate,
    all_of,
    are_exclusive,
    both,
    either,
)

_TENSOR = Builder().placeholder("p", BOOL)
PREDICATES = [
    BranchPredicate(number, "bool", _TENSOR, branches, _TENSOR.op)
    for number, branches in enumerate((2, 2, 2, 3))
]
P, NOT_P, Q, NOT_Q = ((0, 1),), ((0, 0),), ((1, 1),), ((1, 0),)


def test_both_holds_where_each_does_in_the_order_of_the_predicates():
    assert both(Q, P) == both(P, Q) == ((0, 1), (1, 1))
    assert both(P, ALWAYS) == both(ALWAYS, P) == P
    assert both(P, NOT_P) is None
    assert all_of([P, ALWAYS, None]) is None
    assert all_of([]) == ALWAYS


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        ([P, NOT_P], ALWAYS),
        ([P, ((0, 0), (1, 1)), ((0, 0), (1, 0))], ALWAYS),
        ([((0, 1), (1, 1)), ((0, 0), (1, 1))], Q),
        ([((3, 0),), ((3, 1),), ((3, 2),)], ALWAYS),
        ([((3, 0),), ((3, 1),)], None),
        ([P, Q], None),
        ([P, ((0, 1), (1, 1))], P),
        ([P, ALWAYS], ALWAYS),
        ([P], P),
    ],
)
def test_either_is_one_conjunction_or_none(contexts, expected):
    assert either(contexts, PREDICATES) == expected


def test_contexts_are_exclusive_where_no_two_hold_together():
    assert are_exclusive([P, ((0, 0), (1, 1)), ((0, 0), (1, 0))])
    assert not are_exclusive([P, NOT_Q])
    assert not are_exclusive([P, P])
