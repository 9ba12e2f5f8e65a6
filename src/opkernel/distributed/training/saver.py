"""Saver: checkpoints of a graph's variables, which each task writes for its own, and one task joins.

Source: TensorFlow python/training/saver.py (a sharded Saver of format V2).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Operation, get_default_graph
from opkernel.graph.core.structural_ops import VARIABLE_OPS
from opkernel.opdef import DeviceName
from opkernel.records import dataclass, replace
from opkernel.runtime import Session
from opkernel.types import DataType, PartialTensorShape

_PREFIX, _SAVED, _RESTORED = "save/Const", "save/control_dependency", "save/restore_all"
"""The nodes of a Saver, by the names that TensorFlow's have."""

Variables = Mapping[str, "Operation | Sequence[Operation]"] | Iterable[Operation]


@dataclass(frozen=True)
class _Part:
    """A variable, or a slice of one, in a checkpoint.

    Attributes:
        name: The name there.
        op: The operation that stands for it.
        slice: The full shape and the slice, as checkpoints have it; empty for all of it.
    """

    name: str
    op: Operation
    slice: str = ""


class Saver:
    """Saves and restores the variables of a graph.

        saver = opkernel.distributed.Saver(graph)
        manager = opkernel.CheckpointManager("training")
        manager.save(functools.partial(saver.save, session), step)
        saver.restore(session, manager.latest_checkpoint)

    All tasks must see the files by the same path. Until its index is written, at the end of `save`, a checkpoint
    does not exist: one that was interrupted leaves the former ones whole.

    Args:
        graph: the graph, which gets nodes for it; the default graph where not given.
        variables: the operations of the variables, by name or in order; or, for a variable in slices along its
            first dimension, those of the slices in order. All variables of the graph where not given.

    Raises:
        InvalidArgumentError: there is no variable, something is none, or slices do not fit together.
        FailedPreconditionError: the graph is finalized.
    """

    def __init__(self, graph: Graph | None = None, variables: Variables | None = None) -> None:
        self.graph = get_default_graph() if graph is None else graph
        parts = list(_parts(self.graph, variables))
        if not parts:
            raise InvalidArgumentError("No variables to save")
        by_device: dict[str, list[_Part]] = {}
        for part in parts:
            by_device.setdefault(_cpu_of(part.op), []).append(part)
        with self.graph.as_default(), self.graph.control_dependencies(None):
            default = np.array(b"model", object)
            prefix = raw_ops.PlaceholderWithDefault(input=default, shape=[], name=_PREFIX)
            self._prefix = prefix.name
            self._saved = _add_save(self.graph, prefix, by_device).name
            self._restored = _add_restore(self.graph, prefix, by_device).name

    @classmethod
    def of(cls, graph: Graph) -> Saver:
        """The Saver that a graph has nodes of, such as one of TensorFlow; else a new one of all variables."""
        names = {op.name for op in graph.get_operations()}
        if not {_PREFIX, _SAVED, _RESTORED} <= names:
            return cls(graph)
        saver = cls.__new__(cls)
        saver.graph = graph
        saver._prefix, saver._saved = f"{_PREFIX}:0", f"{_SAVED}:0"
        saver._restored = _RESTORED
        return saver

    def save(self, session: Session, prefix: str | os.PathLike[str]) -> str:
        """Write a checkpoint; gives its prefix.

        Raises:
            FailedPreconditionError: a variable has no value.
            OpError: a file cannot be written, or a task is not there.
        """
        path = os.path.abspath(prefix)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        session.run_saver(self._saved, self._feeds(path), saves=path)
        return path

    def restore(self, session: Session, prefix: str | os.PathLike[str]) -> None:
        """Give the variables the values of a checkpoint.

        Raises:
            NotFoundError: there is no such checkpoint, or it lacks a variable.
            DataLossError: it is damaged.
        """
        path = os.path.abspath(prefix)
        session.run_saver(self._restored, self._feeds(path), restores=path)

    def _feeds(self, path: str) -> dict[str, bytes]:
        return {self._prefix: os.fsencode(path)}


def _parts(graph: Graph, variables: Variables | None) -> Iterable[_Part]:
    if variables is None:
        variables = [op for op in graph.get_operations() if op.type in VARIABLE_OPS]
    if not isinstance(variables, Mapping):
        variables = {op.name: op for op in variables}
    for name, given in variables.items():
        ops = [given] if isinstance(given, Operation) else list(given)
        for op in ops:
            if not isinstance(op, Operation) or op.type not in VARIABLE_OPS:
                raise InvalidArgumentError(f"{op!r} stands for no variable, so it cannot be saved")
        if isinstance(given, Operation):
            yield _Part(name, given)
        else:
            yield from _slices(name, ops)


def _slices(name: str, ops: Sequence[Operation]) -> Iterable[_Part]:
    """The slices of a variable along its first dimension."""
    known = [PartialTensorShape.from_proto(op.get_attr("shape")) for op in ops]
    shapes = [shape.as_tensor_shape().as_list() for shape in known]
    rest = shapes[0][1:] if shapes else []
    if not shapes or any(not shape or shape[1:] != rest for shape in shapes):
        raise InvalidArgumentError(f"The slices of {name!r} do not fit together: {shapes}")
    full = " ".join(map(str, [sum(shape[0] for shape in shapes), *rest]))
    start = 0
    for op, shape in zip(ops, shapes, strict=True):
        extents = ":".join([f"{start},{shape[0]}", *("-" for _ in rest)])
        yield _Part(name, op, f"{full} {extents}")
        start += shape[0]


def _cpu_of(op: Operation) -> str:
    """The CPU of the task that a variable asks for; empty where it asks for none."""
    asked = DeviceName.parse_full_name(op.device)
    return "" if asked.job is None else str(replace(asked, type="CPU", id=0))


def _add_save(graph: Graph, prefix: Any, by_device: Mapping[str, Sequence[_Part]]) -> Any:
    """The prefix, once all tasks have written their parts and one has joined them."""
    unique = np.array(f"_temp_{uuid.uuid4().hex}/part".encode(), object)
    shared = raw_ops.StringJoin(inputs=[prefix, unique], name="save/StringJoin")
    count, written, saves = np.int32(len(by_device)), [], []
    for shard, (device, parts) in enumerate(by_device.items()):
        with graph.device(device):
            path = raw_ops.ShardedFilename(
                basename=shared,
                shard=np.int32(shard),
                num_shards=count,
                name="save/ShardedFilename",
            )
            saves.append(
                raw_ops.SaveV2(
                    prefix=path,
                    tensor_names=_texts([part.name for part in parts]),
                    shape_and_slices=_texts([part.slice for part in parts]),
                    tensors=[_read(graph, part.op) for part in parts],
                    name="save/SaveV2",
                )
            )
        written.append(path)
    with graph.control_dependencies(saves):
        merge = raw_ops.MergeV2Checkpoints(
            checkpoint_prefixes=raw_ops.Pack(values=written),
            destination_prefix=prefix,
            name="save/MergeV2Checkpoints",
        )
    with graph.control_dependencies([merge]):
        return raw_ops.Identity(input=prefix, name=_SAVED)


def _add_restore(graph: Graph, prefix: Any, by_device: Mapping[str, Sequence[_Part]]) -> Operation:
    """What sets all variables."""
    assigned = []
    for device, parts in by_device.items():
        with graph.device(device):
            values = raw_ops.RestoreV2(
                prefix=prefix,
                tensor_names=_texts([part.name for part in parts]),
                shape_and_slices=_texts([part.slice for part in parts]),
                dtypes=[part.op.get_attr("dtype") for part in parts],
                name="save/RestoreV2",
            )
        for part, value in zip(parts, values, strict=True):
            with graph.colocate_with(part.op):
                assigned.append(_assign(part.op, value))
    with graph.control_dependencies(assigned):
        return _operation(raw_ops.NoOp(name=_RESTORED))


def _read(graph: Graph, op: Operation) -> Any:
    with graph.colocate_with(op):
        if _is_resource(op):
            return raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=op.get_attr("dtype"))
        return raw_ops.Identity(input=op.outputs[0])


def _assign(op: Operation, value: Any) -> Operation:
    if _is_resource(op):
        return _operation(raw_ops.AssignVariableOp(resource=op.outputs[0], value=value))
    return _operation(raw_ops.Assign(ref=op.outputs[0], value=value))


def _is_resource(op: Operation) -> bool:
    return bool(op.outputs[0].dtype is DataType.DT_RESOURCE)


def _operation(made: Any) -> Operation:
    """The operation of what a function of `raw_ops` gives."""
    return made if isinstance(made, Operation) else made.op


def _texts(texts: Sequence[str]) -> Any:
    return np.array([text.encode() for text in texts], object)
