"""Calls that are made to want much: recorded ones, files and messages, and ops that keep something between calls.

Each is a GraphDef. The op that is called stands last, after all that it needs.
"""

import functools
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from tools.campaigns.encoded_calls import KINDS
from tools.campaigns.samples import calls, graph_of_call

from opkernel import raw_ops
from opkernel.errors import OpError
from opkernel.graph import Graph, Operation, Tensor, get_default_graph
from opkernel.opdef import global_op_registry
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.proto import GraphDef, OpDef

__all__ = ["samples"]

_FLOAT = np.float32
_ROWS, _COLUMNS = 3, 4
_VALUE = np.arange(_ROWS * _COLUMNS, dtype=_FLOAT).reshape(_ROWS, _COLUMNS)
_PARTS = np.ones((2, _COLUMNS), _FLOAT)
_CHOSEN = np.array([0, 2], np.int32)


@functools.cache
def samples() -> dict[str, list[GraphDef]]:
    """The calls, by op."""
    found: dict[str, list[GraphDef]] = defaultdict(list)
    for sample in (*_recorded(), *_encoded(), *_of_variables(), *_written_out()):
        found[sample.node[-1].op].append(sample)
    return dict(found)


def _recorded() -> Iterator[GraphDef]:
    return map(graph_of_call, calls())


def _encoded() -> Iterator[GraphDef]:
    """Calls that decode right files and messages, some of each kind."""
    rng = random.Random(0)
    for kind in KINDS.values():
        texts = kind.samples()
        for _ in range(24):
            call = kind.call([rng.choice(texts) for _ in "abc"], rng)
            with suppress(OpError, TypeError, ValueError):
                yield _made(
                    functools.partial(getattr(raw_ops, call.op), **call.inputs, **call.attrs)
                )


def _made(build: Callable[[], Any]) -> GraphDef:
    """The graph of what is built, whose last operation is the call."""
    with Graph().as_default() as graph:
        build()
    return graph.as_graph_def()


# Ops on variables, from their declarations alone.


def _of_variables() -> Iterator[GraphDef]:
    for op, module in MODULE_OF_OP.items():
        if module.startswith(("variables.", "training")):
            op_def = global_op_registry().look_up_op_def(op)
            with suppress(OpError, TypeError, ValueError):
                yield _made(functools.partial(_call_on_variables, op_def))


def _call_on_variables(op_def: OpDef) -> None:
    has_parts = any(arg.name == "indices" for arg in op_def.input_arg)
    made = {arg.name: _argument(op_def, arg, has_parts) for arg in op_def.input_arg}
    first = [start for _, start in made.values() if start is not None]
    with get_default_graph().control_dependencies(first):
        getattr(raw_ops, op_def.name)(**{name: value for name, (value, _) in made.items()})


def _argument(op_def: OpDef, arg: OpDef.ArgDef, has_parts: bool) -> tuple[Any, Operation | None]:
    """A value for an argument and, of a variable, what sets it."""
    if arg.type == 20:  # a handle
        handle = raw_ops.VarHandleOp(dtype="float32", shape=_VALUE.shape, shared_name=arg.name)
        return handle, raw_ops.AssignVariableOp(resource=handle, value=_VALUE)
    if arg.is_ref:
        variable = raw_ops.VariableV2(shape=_VALUE.shape, dtype="float32", name=f"v_{arg.name}")
        return variable, raw_ops.Assign(ref=variable, value=_VALUE).op
    if arg.name == "indices":
        return (_CHOSEN[:, None] if "Nd" in op_def.name else _CHOSEN), None
    if arg.name in ("grad", "updates", "value", "delta", "gradient_value"):
        return (_PARTS if has_parts else _VALUE), None
    return _FLOAT(0.5), None


# Other ops with state, written out.


def _written_out() -> Iterator[GraphDef]:
    for build in (*_QUEUES, *_TABLES, *_ARRAYS, *_MATRICES, *_RANDOM, *_STORES):
        yield _made(build)


def _after(*first: Any) -> Any:
    """Within the block, operations run after these."""
    return get_default_graph().control_dependencies(
        [one.op if isinstance(one, Tensor) else one for one in first]
    )


def _queue(**attrs: Any) -> Any:
    return raw_ops.FIFOQueueV2(component_types=["float32"], shapes=[[_COLUMNS]], **attrs)


def _filled_queue() -> Any:
    queue = _queue()
    return queue, raw_ops.QueueEnqueueManyV2(handle=queue, components=[_VALUE])


def _enqueue() -> None:
    raw_ops.QueueEnqueueManyV2(handle=_queue(), components=[_VALUE])


def _dequeue(op: str) -> Callable[[], None]:
    def build() -> None:
        queue, first = _filled_queue()
        with _after(first):
            getattr(raw_ops, op)(handle=queue, n=2, component_types=["float32"])

    return build


_QUEUES = [_enqueue, _dequeue("QueueDequeueManyV2"), _dequeue("QueueDequeueUpToV2")]


def _table(op: str, **attrs: Any) -> Any:
    keys = np.array([3, 1, 2], np.int64)
    table = getattr(raw_ops, op)(value_dtype="float32", **attrs)
    values = np.array([1, 2, 3], _FLOAT)
    return table, raw_ops.LookupTableInsertV2(table_handle=table, keys=keys, values=values)


def _dense(op: str) -> Any:
    empty, deleted = np.int64(-1), np.int64(-2)
    return _table(op, empty_key=empty, deleted_key=deleted, value_shape=[])


def _on_table(table: Callable[[], Any], call: Callable[[Any], Any]) -> Callable[[], None]:
    def build() -> None:
        handle, first = table()
        with _after(first):
            call(handle)

    return build


_MORE_KEYS = np.array([1, 2, 7], np.int64)
_KINDS_OF_TABLES: list[Callable[[], Any]] = [
    lambda: _table("MutableHashTableV2", key_dtype="int64"),
    lambda: _dense("MutableDenseHashTableV2"),
]
_CALLS_OF_TABLES: list[Callable[[Any], Any]] = [
    lambda table: raw_ops.LookupTableFindV2(
        table_handle=table, keys=_MORE_KEYS, default_value=_FLOAT(0)
    ),
    lambda table: raw_ops.LookupTableInsertV2(
        table_handle=table, keys=_MORE_KEYS, values=np.ones(3, _FLOAT)
    ),
    lambda table: raw_ops.LookupTableImportV2(
        table_handle=table, keys=_MORE_KEYS, values=np.ones(3, _FLOAT)
    ),
    lambda table: raw_ops.LookupTableRemoveV2(table_handle=table, keys=_MORE_KEYS),
    lambda table: raw_ops.LookupTableExportV2(table_handle=table, Tkeys="int64", Tvalues="float32"),
]
_TABLES = [_on_table(table, call) for table in _KINDS_OF_TABLES for call in _CALLS_OF_TABLES]


def _array_call(call: Callable[[Any, Any], Any]) -> Callable[[], None]:
    """A call on a TensorArray that has rows."""

    def build() -> None:
        size = np.int32(_ROWS)
        handle, flow = raw_ops.TensorArrayV3(size=size, dtype="float32", dynamic_size=True)
        places = np.arange(_ROWS, dtype=np.int32)
        flow = raw_ops.TensorArrayScatterV3(
            handle=handle, indices=places, value=_VALUE, flow_in=flow
        )
        call(handle, flow)

    return build


_ARRAYS = [
    _array_call(
        lambda handle, flow: raw_ops.TensorArrayGatherV3(
            handle=handle, indices=_CHOSEN, flow_in=flow, dtype="float32"
        )
    ),
    _array_call(
        lambda handle, flow: raw_ops.TensorArrayConcatV3(
            handle=handle, flow_in=flow, dtype="float32"
        )
    ),
    _array_call(
        lambda handle, flow: raw_ops.TensorArrayScatterV3(
            handle=handle, indices=_CHOSEN + 3, value=_PARTS, flow_in=flow
        )
    ),
    _array_call(
        lambda handle, flow: raw_ops.TensorArraySplitV3(
            handle=handle, value=_VALUE, lengths=np.array([1, 2], np.int64), flow_in=flow
        )
    ),
]


def _sparse_matrix(seed: int = 0) -> Any:
    dense = np.random.default_rng(seed).integers(0, 3, (4, 4)).astype(_FLOAT)
    places = np.argwhere(dense)
    return raw_ops.DenseToCSRSparseMatrix(dense_input=dense, indices=places.astype(np.int64))


_MATRICES: list[Callable[[], Any]] = [
    _sparse_matrix,
    lambda: raw_ops.CSRSparseMatrixToDense(sparse_input=_sparse_matrix(), type="float32"),
    lambda: raw_ops.CSRSparseMatrixToSparseTensor(sparse_matrix=_sparse_matrix(), type="float32"),
    lambda: raw_ops.SparseMatrixMatMul(a=_sparse_matrix(), b=np.ones((4, 3), _FLOAT)),
    lambda: raw_ops.SparseMatrixSparseMatMul(
        a=_sparse_matrix(), b=_sparse_matrix(1), type="float32"
    ),
    lambda: raw_ops.SparseMatrixTranspose(input=_sparse_matrix(), type="float32"),
    lambda: raw_ops.SparseMatrixOrderingAMD(input=_sparse_matrix()),
    lambda: raw_ops.SparseMatrixNNZ(sparse_matrix=_sparse_matrix()),
]


def _generator(call: Callable[..., Any]) -> Callable[[], None]:
    def build() -> None:
        handle = raw_ops.VarHandleOp(dtype="int64", shape=[3], shared_name="generator")
        start = raw_ops.AssignVariableOp(resource=handle, value=np.array([1, 0, 7], np.int64))
        with _after(start):
            call(resource=handle, algorithm=np.int64(1), shape=np.array([2, 3], np.int64))

    return build


_RANDOM: list[Callable[[], Any]] = [
    _generator(raw_ops.StatefulStandardNormalV2),
    _generator(raw_ops.StatefulTruncatedNormal),
    _generator(raw_ops.StatefulUniform),
    _generator(functools.partial(raw_ops.StatefulUniformFullInt, dtype="int64")),
    lambda: raw_ops.RandomPoissonV2(shape=np.array([2], np.int32), rate=np.array([3e9], _FLOAT)),
    lambda: raw_ops.RandomGamma(shape=np.array([2], np.int32), alpha=np.array([0.3], _FLOAT)),
]


def _stack() -> None:
    handle = raw_ops.StackV2(max_size=np.int32(-1), elem_type="float32")
    raw_ops.StackPushV2(handle=handle, elem=_VALUE)


def _stage() -> None:
    with _after(raw_ops.Stage(values=[_VALUE])):
        raw_ops.Unstage(dtypes=["float32"])


def _accumulate() -> None:
    handle = raw_ops.ResourceConditionalAccumulator(dtype="float32", shape=_VALUE.shape)
    raw_ops.ResourceAccumulatorApplyGradient(handle=handle, local_step=np.int64(0), gradient=_VALUE)


def _keep_sparse() -> None:
    indices = np.array([[0, 0], [1, 2]], np.int64)
    values, shape = np.ones(2, _FLOAT), np.array([2, 3], np.int64)
    raw_ops.AddManySparseToTensorsMap(
        sparse_indices=indices, sparse_values=values, sparse_shape=shape
    )


_STORES = [_stack, _stage, _accumulate, _keep_sparse]
