"""Graphs whose nodes are on the tasks of a cluster."""

from __future__ import annotations

import numpy as np

import opkernel
from opkernel.graph import Graph

__all__ = ["PS", "WORKER", "chain", "parameter_server"]

PS, WORKER = "/job:ps/task:0", "/job:worker/task:{}"
ops = opkernel.raw_ops


def chain(*tasks: str) -> Graph:
    """`y` = `x` + 1 + 1 ..., where each task adds one."""
    graph = Graph()
    with graph.as_default():
        value = ops.Placeholder(dtype=opkernel.float32, shape=[None], name="x")
        for number, task in enumerate(tasks):
            with graph.device(task):
                value = ops.AddV2(x=value, y=np.float32(1), name=f"add_{number}")
        with graph.device(tasks[-1]):
            ops.Identity(input=value, name="y")
    return graph


def parameter_server() -> Graph:
    """A variable on the ps, which `init` sets to 10 and `add` on worker 1 adds `x` + 1 to; `read` reads it."""
    graph = Graph()
    with graph.as_default():
        with graph.device(PS):
            v = ops.VarHandleOp(dtype=opkernel.float32, shape=[], shared_name="v", name="v")
            ops.AssignVariableOp(resource=v, value=np.float32(10), name="init")
            ops.ReadVariableOp(resource=v, dtype=opkernel.float32, name="read")
        with graph.device(WORKER.format(1)):
            x = ops.Placeholder(dtype=opkernel.float32, shape=[], name="x")
            more = ops.AddV2(x=x, y=np.float32(1), name="more")
        with graph.device(PS):
            ops.AssignAddVariableOp(resource=v, value=more, name="add")
    return graph
