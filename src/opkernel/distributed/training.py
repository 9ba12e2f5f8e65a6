"""Training on a cluster: where variables are, how they are saved, and how training goes on after a failure.

`replica_device_setter` puts variables on the parameter servers in turns, all else on a worker. A `Saver` has each task
write the checkpoint of its own variables, and one task join them. `resume` has training go on from checkpoints after
tasks have died.

Source: TensorFlow python/training/device_setter.py, saver.py (a sharded Saver of format V2), the recovery of
session_manager.py (recover_session).
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.checkpoint import latest_checkpoint
from opkernel.distributed.cluster.cluster_spec import ClusterSpec, Jobs
from opkernel.distributed.cluster.master_session import MasterSession
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph import Graph, Operation, get_default_graph
from opkernel.graph.core.structural_ops import VARIABLE_OPS
from opkernel.opdef import DeviceName
from opkernel.records import dataclass, replace
from opkernel.runtime import Session
from opkernel.types import DataType, PartialTensorShape

PS_OPS = VARIABLE_OPS | {
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "MutableHashTable",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableHashTableV2",
    "ResourceConditionalAccumulator",
}
"""The ops whose nodes have what replicas share."""


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    *,
    cluster: ClusterSpec | Jobs | None = None,
    ps_ops: Collection[str] = PS_OPS,
    ps_strategy: Callable[[Operation], int] | None = None,
) -> Callable[[Operation], str] | None:
    """A device function for `graph.device`, as a replica of a model wants it.

        with graph.device(replica_device_setter(cluster=spec, worker_device="/job:worker/task:1")):
            ...

    What operations ask for themselves counts more.

    Args:
        ps_tasks: how many parameter servers there are; where 0, the device function is None, and scopes count.
        ps_device: the beginning of their devices' names; empty for none.
        worker_device: the device of all else; empty for none.
        cluster: a cluster, whose job of the name in `ps_device` has the parameter servers.
        ps_ops: the ops whose nodes are on parameter servers.
        ps_strategy: chooses the parameter server of a node by its index; in turns where not given.

    Raises:
        InvalidArgumentError: a text names no device, or the number of parameter servers is negative.
    """
    servers, worker = map(DeviceName.parse_full_name, (ps_device, worker_device))
    if cluster is not None:
        spec = ClusterSpec(cluster)
        ps_tasks = spec.num_tasks(servers.job) if servers.job in spec.jobs and servers.job else 0
    if ps_tasks < 0:
        raise InvalidArgumentError(f"There cannot be {ps_tasks} parameter servers")
    if ps_tasks == 0:
        return None
    numbers = itertools.count()
    choose = ps_strategy or (lambda op: next(numbers) % ps_tasks)

    def device_of(op: Operation) -> str:
        asked = DeviceName.parse_full_name(op.device)
        if op.type not in ps_ops or not ps_device:
            return str(worker.merge(asked))
        is_server_open = servers.task is None and asked.job in (None, servers.job)
        server = replace(servers, task=choose(op)) if is_server_open else servers
        return str(server.merge(asked))

    return device_of


_PREFIX, _SAVED, _RESTORED = "save/Const", "save/control_dependency", "save/restore_all"
"""The nodes of a Saver, by the names that TensorFlow's have."""

Variables = Mapping[str, "Operation | Sequence[Operation]"] | Iterable[Operation]


@dataclass(frozen=True)
class _SavedPart:
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
        by_device: dict[str, list[_SavedPart]] = {}
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


def _parts(graph: Graph, variables: Variables | None) -> Iterable[_SavedPart]:
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
            yield _SavedPart(name, given)
        else:
            yield from _slices(name, ops)


def _slices(name: str, ops: Sequence[Operation]) -> Iterable[_SavedPart]:
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
        yield _SavedPart(name, op, f"{full} {extents}")
        start += shape[0]


def _cpu_of(op: Operation) -> str:
    """The CPU of the task that a variable asks for; empty where it asks for none."""
    asked = DeviceName.parse_full_name(op.device)
    return "" if asked.job is None else str(replace(asked, type="CPU", id=0))


def _add_save(graph: Graph, prefix: Any, by_device: Mapping[str, Sequence[_SavedPart]]) -> Any:
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


def _add_restore(
    graph: Graph, prefix: Any, by_device: Mapping[str, Sequence[_SavedPart]]
) -> Operation:
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


def resume(
    session: Session,
    checkpoint: str | os.PathLike[str] | None = None,
    *,
    saver: Saver | None = None,
    init: Sequence[Any] | Any = (),
    timeout_s: float = 60.0,
) -> None:
    """Have a session go on after a step has ended with UNAVAILABLE or ABORTED.

        try:
            session.run(train)
        except (UnavailableError, AbortedError):
            opkernel.distributed.resume(session, "training")

    It waits until all tasks are there, registers the session's programs with them anew, and restores the
    variables. Variables that are in no checkpoint, queues and tables of a task that died are as after its start.

    Args:
        session: the session, on a cluster or not.
        checkpoint: the prefix of a checkpoint, or a directory, of which it is the latest; None restores nothing.
        saver: restores; where not given, that of the graph (see `Saver.of`).
        init: fetches that are run before: they initialise tables, say.
        timeout_s: how long tasks are waited for, in seconds.

    Raises:
        NotFoundError: there is no such checkpoint.
        UnavailableError: a task is still not there after that time.
    """
    if isinstance(session.target_session, MasterSession):
        session.target_session.renew(timeout_s)
    prefix = None if checkpoint is None else _prefix(os.fspath(checkpoint))
    if init:
        session.run(init)
    if prefix is not None:
        (saver or Saver.of(session.graph)).restore(session, prefix)


def _prefix(checkpoint: str) -> str:
    if not os.path.isdir(checkpoint):
        return checkpoint
    found = latest_checkpoint(checkpoint)
    if found is None:
        raise NotFoundError(f"There is no checkpoint in {checkpoint}")
    return found
