"""Graphs that train the network of examples/digits on the tasks of a cluster.

| way | variables | gradients |
|---|---|---|
| synchronous | on the parameter servers in turns | of equal parts of the batch on each worker; their mean is applied |
| asynchronous | on the parameter servers in turns | each worker applies its own, whenever it has them |
| all_reduce | a copy on each worker | their mean, by an all-reduce between the workers, is applied on each |
"""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
from graph_variables import Adam, GraphVariable

import opkernel
from opkernel import raw_ops
from opkernel.distributed import ClusterSpec, replica_device_setter

sys.path.append(str(Path(__file__).resolve().parent.parent / "training"))
digits: Any = importlib.import_module("digits")
network: Any = importlib.import_module("network")


def training_graph(spec: ClusterSpec, way: str) -> opkernel.Graph:
    """The graph of a way to train.

    It has `init`, and for the synchronous ways `train`, `loss:0` (the loss before the step), `images:0`, `labels:0` and
    the number of steps done, `steps/read:0`. The asynchronous way has these for each worker, as `train_1`,
    `loss_1:0`, `images_1:0`, `labels_1:0`.
    """
    with opkernel.Graph().as_default() as graph:
        workers = [f"/job:worker/task:{index}" for index in spec.task_indices("worker")]
        if way == "all_reduce":
            _all_reduce(graph, workers)
        else:
            _parameter_servers(graph, spec, workers, is_synchronous=way == "synchronous")
    return graph


def _parameter_servers(
    graph: opkernel.Graph, spec: ClusterSpec, workers: list[str], *, is_synchronous: bool
) -> None:
    with graph.device(replica_device_setter(cluster=spec, worker_device=workers[0])):
        variables, steps = _variables(""), GraphVariable(np.int64(0), "steps")
        adam = Adam(variables)
    _initializer(graph, [*variables.values(), steps], adam.initializers)
    steps.read("steps/read")
    if is_synchronous:
        parts = _parts_of_batch(graph, workers)
        losses, gradients = zip(
            *(
                _loss_and_gradients(graph, w, variables, *p)
                for w, p in zip(workers, parts, strict=True)
            ),
            strict=True,
        )
        with graph.device(workers[0]):
            _mean(list(losses), "loss")
            mean = {name: _mean([one[name] for one in gradients]) for name in variables}
        _train(graph, adam, steps, mean, "train")
        return
    for index, worker in enumerate(workers):
        with graph.device(worker):
            images, labels = _placeholders(f"_{index}")
        loss, own = _loss_and_gradients(graph, worker, variables, images, labels)
        with graph.device(worker):
            raw_ops.Identity(input=loss, name=f"loss_{index}")
        _train(graph, adam, steps, own, f"train_{index}")


def _all_reduce(graph: opkernel.Graph, workers: list[str]) -> None:
    parts, trained, losses, initializers = _parts_of_batch(graph, workers), [], [], []
    for index, (worker, part) in enumerate(zip(workers, parts, strict=True)):
        with graph.device(worker):
            variables = _variables(f"_{index}")
            adam = Adam(variables, f"_{index}")
        initializers += [v.initializer for v in variables.values()] + adam.initializers
        loss, gradients = _loss_and_gradients(graph, worker, variables, *part)
        losses.append(loss)
        with graph.device(worker):
            mean = {
                name: _reduced(gradient, len(workers), key)
                for key, (name, gradient) in enumerate(gradients.items())
            }
        trained += adam.apply(mean)
    with graph.device(workers[0]):
        _mean(losses, "loss")
        steps = GraphVariable(np.int64(0), "steps")
    initializers.append(steps.initializer)
    steps.read("steps/read")
    _count(graph, steps, trained, "train")
    with graph.control_dependencies(initializers):
        raw_ops.NoOp(name="init")


def _reduced(gradient: Any, size: int, key: int) -> Any:
    """The mean of a gradient over all workers."""
    return raw_ops.CollectiveReduceV2(
        input=gradient,
        group_size=np.int32(size),
        group_key=np.int32(1),
        instance_key=np.int32(key),
        ordering_token=[],
        merge_op="Add",
        final_op="Div",
    )


def _variables(suffix: str) -> dict[str, GraphVariable]:
    return {
        name: GraphVariable(first, f"{name}{suffix}")
        for name, first in digits.initial_weights().items()
    }


def _placeholders(suffix: str = "") -> tuple[Any, Any]:
    images = raw_ops.Placeholder(
        dtype=opkernel.float32, shape=[None, 8, 8, 1], name=f"images{suffix}"
    )
    return images, raw_ops.Placeholder(dtype=opkernel.int32, shape=[None], name=f"labels{suffix}")


def _parts_of_batch(graph: opkernel.Graph, workers: list[str]) -> list[tuple[Any, Any]]:
    """What each worker gets of the batch: equal parts."""
    with graph.device(workers[0]):
        images, labels = _placeholders()
        count = len(workers)
        parts = [
            raw_ops.Split(axis=np.int32(0), value=value, num_split=count)
            for value in (images, labels)
        ]
    return list(zip(*parts, strict=True))


def _loss_and_gradients(
    graph: opkernel.Graph,
    worker: str,
    variables: dict[str, GraphVariable],
    images: Any,
    labels: Any,
) -> tuple[Any, dict[str, Any]]:
    """The mean loss of a part of the batch, and its gradients, computed on a worker."""
    weights = {name: variable.read() for name, variable in variables.items()}
    with graph.device(worker):
        losses = raw_ops.SparseSoftmaxCrossEntropyWithLogits(
            features=network.logits(images, weights), labels=labels
        ).loss
        loss = raw_ops.Mean(input=losses, axis=[0])
        found = opkernel.gradients(loss, [*weights.values()])
    return loss, dict(zip(weights, found, strict=True))


def _mean(values: list[Any], name: str = "mean") -> Any:
    total = raw_ops.AddN(inputs=values)
    return raw_ops.Mul(x=total, y=np.float32(1 / len(values)), name=name)


def _train(
    graph: opkernel.Graph, adam: Adam, steps: GraphVariable, gradients: dict[str, Any], name: str
) -> None:
    _count(graph, steps, adam.apply(gradients), name)


def _count(graph: opkernel.Graph, steps: GraphVariable, updates: list[Any], name: str) -> None:
    """The operation of one step: all updates, then one step more."""
    with graph.control_dependencies(updates), graph.colocate_with(steps.handle.op):
        counted = raw_ops.AssignAddVariableOp(resource=steps.handle, value=np.int64(1))
    with graph.control_dependencies([counted]), graph.colocate_with(steps.handle.op):
        raw_ops.NoOp(name=name)


def _initializer(graph: opkernel.Graph, variables: list[GraphVariable], others: list[Any]) -> None:
    with graph.control_dependencies([*(v.initializer for v in variables), *others]):
        raw_ops.NoOp(name="init")
