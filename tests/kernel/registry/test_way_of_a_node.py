"""A NodeDef goes to its kernel in one direction, and through few modules.

A function is on the way of a node if it is given the NodeDef, or an object that carries the NodeDef: its
properties, the construction of its kernel, the kernel. A **stay** is a run of calls of such functions of one
module, one after the other. A **return** is a stay in a module that an earlier stay was in. What a kernel does
in a constructor of its own is the kernel's business: there the way ends.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from itertools import groupby
from types import FrameType
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.kernel import create_op_kernel, global_kernel_registry
from opkernel.kernel.node_properties import NodeProperties
from opkernel.proto import NodeDef
from opkernel.runtime import CPU

MAX_STAYS = 12
MAX_RETURNS = 4

NODES: dict[str, Callable[[], Any]] = {
    "AddV2": lambda: raw_ops.AddV2(x=matrix(), y=matrix()),
    "Cast": lambda: raw_ops.Cast(x=matrix(), DstT=np.int32),
    "ConcatV2": lambda: raw_ops.ConcatV2(values=[matrix(), matrix()], axis=0),
    "Const": lambda: opkernel.constant([1.0]),
    "Conv2D": lambda: raw_ops.Conv2D(
        input=placed(1, 4, 4, 2), filter=placed(2, 2, 2, 3), strides=[1] * 4, padding="SAME"
    ),
    "Identity": lambda: raw_ops.Identity(input=matrix()),
    "MatMul": lambda: raw_ops.MatMul(a=matrix(), b=matrix()),
    "NoOp": lambda: raw_ops.NoOp(),
    "RandomUniform": lambda: raw_ops.RandomUniform(shape=[2], dtype=np.float32),
    "Relu": lambda: raw_ops.Relu(features=matrix()),
    "Reshape": lambda: raw_ops.Reshape(tensor=matrix(), shape=[4]),
    "StridedSlice": lambda: raw_ops.StridedSlice(input=matrix(), begin=[0], end=[1], strides=[1]),
    "Sum": lambda: raw_ops.Sum(input=matrix(), axis=[0]),
    "VarHandleOp": lambda: raw_ops.VarHandleOp(dtype=np.float32, shape=[2]),
}


def placed(*sizes: int) -> Any:
    return opkernel.placeholder(np.float32, sizes)


def matrix() -> Any:
    return placed(2, 2)


def node_of(op: str) -> NodeDef:
    with opkernel.Graph().as_default() as graph:
        NODES[op]()
    return next(one.node_def for one in graph.get_operations() if one.type == op)


def modules_on_the_way(node_def: NodeDef) -> list[str]:
    """The module of each stay while the kernel of a node is made, one of whose form none was made before."""
    create_op_kernel(CPU, node_def)  # imports what the kernel needs
    global_kernel_registry().note_change(node_def.op)
    visits: list[str] = []
    in_constructor = 0

    def follow(frame: FrameType, event: str, argument: object) -> None:
        nonlocal in_constructor
        module = frame.f_globals.get("__name__", "")
        if module.startswith("opkernel.ops."):
            in_constructor += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not in_constructor and is_on_the_way(frame, node_def):
            visits.append(module)

    sys.setprofile(follow)
    try:
        create_op_kernel(CPU, node_def)
    finally:
        sys.setprofile(None)
    return [module for module, _ in groupby(visits)]


def is_on_the_way(frame: FrameType, node_def: NodeDef) -> bool:
    """Whether a function of the repository is called with a node, or with an object that carries it."""
    if not frame.f_globals.get("__name__", "").startswith("opkernel."):
        return False
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    arguments = [frame.f_locals.get(name) for name in names]
    found = [
        argument.node_def if isinstance(argument, NodeProperties) else argument
        for argument in (*arguments, *[vars_of(one).get("properties") for one in arguments])
    ]
    return any(one is node_def for one in found)


def vars_of(value: object) -> dict[str, Any]:
    return getattr(value, "__dict__", {})


@pytest.mark.parametrize("op", NODES)
def test_few_stays_and_returns(op: str) -> None:
    stays = modules_on_the_way(node_of(op))
    assert stays[0] == inspect.unwrap(create_op_kernel).__module__
    assert len(stays) <= MAX_STAYS, stays
    assert len(stays) - len({*stays}) <= MAX_RETURNS, stays
