"""Graphs of collectives, one node on each task, and what they must give."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opkernel import Graph, raw_ops

__all__ = ["KINDS", "SMALL_AND_LARGE", "Node", "inputs_of", "new_keys", "nodes"]

Node = Mapping[str, Any]
SMALL_AND_LARGE = [12, 750_000]
"""Sizes of tensors: some come along with the request to join, and some are exchanged."""

_instances = itertools.count(5000)


def new_keys(size: int) -> dict[str, Any]:
    """Keys of a group that no other test has."""
    return {"group_size": size, "group_key": 1, "instance_key": next(_instances)}


def inputs_of(size: int, members: int, dtype: Any = np.float32) -> list[Any]:
    """Tensors whose sums depend on the order in which they are added; [members, 3 * size] each."""
    rng = np.random.default_rng(size)
    scale = 10.0 ** rng.integers(-3, 4, (members, members, 3 * size // members))
    return [(one * rng.uniform(-1, 1, one.shape)).astype(dtype) for one in scale]


def _reduce(x: Any, rank: int, keys: Node, name: str) -> Any:
    attrs: dict[str, Any] = {"ordering_token": [], "merge_op": "Add", "final_op": "Div"}
    return raw_ops.CollectiveReduceV2(input=x, **keys, **attrs, name=name)


def _scatter(x: Any, rank: int, keys: Node, name: str) -> Any:
    attrs: dict[str, Any] = {"ordering_token": [], "merge_op": "Add", "final_op": "Id"}
    return raw_ops.CollectiveReduceScatterV2(input=x, **keys, **attrs, name=name)


def _gather(x: Any, rank: int, keys: Node, name: str) -> Any:
    return raw_ops.CollectiveGatherV2(input=x, **keys, ordering_token=[], name=name)


def _all_to_all(x: Any, rank: int, keys: Node, name: str) -> Any:
    return raw_ops.CollectiveAllToAllV2(input=x, **keys, ordering_token=[], name=name)


def _broadcast(x: Any, rank: int, keys: Node, name: str) -> Any:
    if rank == 1:
        return raw_ops.CollectiveBcastSendV2(input=x, **keys, name=name)
    shape = np.array(np.shape(x), np.int64)
    return raw_ops.CollectiveBcastRecvV2(T=x.dtype, shape=shape, **keys, name=name)


def _reduce_v1(x: Any, rank: int, keys: Node, name: str) -> Any:
    attrs: dict[str, Any] = {"merge_op": "Max", "final_op": "Id", "subdiv_offsets": [0]}
    return raw_ops.CollectiveReduce(input=x, **keys, **attrs, name=name)


KINDS = {
    "reduce": _reduce,
    "reduce_scatter": _scatter,
    "gather": _gather,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
    "reduce_v1": _reduce_v1,
}


def nodes(kind: str, inputs: Sequence[Any], devices: Sequence[str] = ()) -> Graph:
    """A graph with a node `y0`, `y1`, ... for each input, on the devices where they are given."""
    keys = new_keys(len(inputs))
    with Graph().as_default() as graph:
        for rank, x in enumerate(inputs):
            with graph.device(devices[rank] if devices else ""):
                KINDS[kind](x, rank, keys, f"y{rank}")
    return graph
