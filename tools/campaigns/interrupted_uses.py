"""Uses of opkernel that are interrupted, and must work when they are tried again.

A use prepares something and then does it, as often as it is asked to; each time it has the same answer. This module
imports nothing of opkernel: the first use in a process does.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tools.campaigns.interrupted_models import Use, dense_module, image, network
from tools.campaigns.interrupted_services import SERVICES

__all__ = ["USES"]

_DATA = Path(__file__).parents[2] / "tests" / "data"


def _session(**options: Any) -> Callable[[], Any]:
    def prepare() -> Any:
        import opkernel

        return opkernel.Session(network(), **options)

    return prepare


def _run(session: Any) -> Any:
    return [session.run("y:0", {"x:0": image()}) for _ in range(2)]


def _optimize(graph: Any) -> Any:
    import opkernel

    x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")
    optimized = opkernel.optimize_graph(graph, [y], feeds=[x])
    with opkernel.Graph().as_default() as other:
        opkernel.import_graph_def(optimized.as_graph_def(), name="")
    return opkernel.Session(other).run("y:0", {"x:0": image()})


def _nothing() -> None:
    return None


def _load_graph(_: Any) -> Any:
    import opkernel

    graph = opkernel.load_graph(_DATA / "graph_with_functions.pb")
    ops = graph.get_operations()
    ends = [op.outputs[0] for op in ops if op.outputs and not op.outputs[0].consumers()]
    feeds = {
        op.outputs[0]: np.ones([n or 2 for n in op.outputs[0].shape.as_list()])
        for op in ops
        if op.type == "Placeholder"
    }
    with opkernel.Session(graph) as session:
        return session.run(ends, feeds)


def _load_saved(version: str) -> Callable[[Any], Any]:
    def do(_: Any) -> Any:
        import opkernel

        model = opkernel.load(_DATA / "saved_models" / version)
        answers = [model.signatures["serving_default"](x=np.ones((2, 3), np.float32))]
        if "look_up" in model.signatures:
            answers.append(model.signatures["look_up"](words=np.array([b"two", b"none"], object)))
        return answers

    return do


def _call_saved(model: Any) -> Any:
    return model.signatures["serving_default"](x=np.ones((2, 3), np.float32))


def _loaded(version: str) -> Callable[[], Any]:
    def prepare() -> Any:
        import opkernel

        return opkernel.load(_DATA / "saved_models" / version)

    return prepare


def _function() -> Any:
    import opkernel
    from opkernel import raw_ops

    @opkernel.function
    def collatz(n: Any, limit: Any) -> Any:
        def turn(n: Any, count: Any) -> Any:
            return opkernel.cond(
                raw_ops.Equal(x=n % 2, y=n * 0), lambda: n // 2, lambda: n * 3 + 1
            ), count + 1

        return opkernel.while_loop(lambda n, c: (n > 1) & (c < limit), turn, [n, n * 0])

    return collatz


def _call_function(collatz: Any) -> Any:
    return [collatz(np.int32(n), np.int32(100)) for n in (6, 7)], collatz(np.int64(9), np.int64(50))


def _gradient(_: Any) -> Any:
    import opkernel
    from opkernel import raw_ops

    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [2, 3], name="x")
        w = opkernel.constant(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3))
        turn = lambda i, y: (i + 1, raw_ops.Tanh(x=raw_ops.MatMul(a=y, b=w)))  # noqa: E731
        _, y = opkernel.while_loop(lambda i, y: i < 3, turn, [0, x])
        loss = raw_ops.Sum(input=raw_ops.Softmax(logits=y) * y, axis=[0, 1])
        grads = opkernel.gradients(loss, [x, w])
    with opkernel.Session(graph) as session:
        return session.run([loss, *grads], {x: np.ones((2, 3), np.float32)})


def _train(_: Any) -> Any:
    import opkernel
    from opkernel import raw_ops

    model = dense_module()()
    optimizer = opkernel.optimizers.Adam(0.1)

    def loss(x: Any, y: Any) -> Any:
        error = model(x) - y
        return raw_ops.Mean(input=error * error, axis=[0, 1])

    x = np.eye(2, dtype=np.float32)
    losses = [optimizer.minimize(loss, model, x, x[:, :1]) for _ in range(3)]
    return losses, model.kernel.numpy(), model.bias.numpy()


def _checkpoints() -> Any:
    return tempfile.TemporaryDirectory(), dense_module()


def _save_and_restore(state: Any) -> Any:
    import opkernel

    folder, dense = state
    model, other = dense(), dense()
    model.bias.assign([3.0])
    manager = opkernel.CheckpointManager(Path(folder.name) / "managed", max_to_keep=2)
    checkpoint = opkernel.Checkpoint(model=model)
    path = checkpoint.save(Path(folder.name) / "ckpt")
    opkernel.Checkpoint(model=other).restore(path)
    opkernel.save(model, Path(folder.name) / "saved")
    again = opkernel.load(Path(folder.name) / "saved")
    left = [n for n in os.listdir(folder.name) if ".tempstate" in n or n.startswith(".")]
    return other.bias.numpy(), again(np.ones((1, 2), np.float32)), left, len(manager.checkpoints)


def _queue() -> Any:
    import opkernel
    from opkernel import raw_ops

    with opkernel.Graph().as_default() as graph:
        queue = raw_ops.FIFOQueueV2(component_types=[opkernel.float32], name="queue")
        x = opkernel.placeholder(opkernel.float32, [], name="x")
        put = raw_ops.QueueEnqueueV2(handle=queue, components=[x], name="put")
        with graph.control_dependencies([put]):
            taken = raw_ops.QueueDequeueV2(handle=queue, component_types=[opkernel.float32])
        raw_ops.Mul(x=taken[0], y=np.float32(2), name="y")
    return opkernel.Session(graph, inter_op_threads=2)


def _run_queue(session: Any) -> Any:
    return [session.run("y:0", {"x:0": 3.0}) for _ in range(3)]


def _partial(_: Any) -> Any:
    import opkernel

    with opkernel.Session(network()) as session:
        handle = session.partial_run_setup(["y:0", "Relu:0"], ["x:0"])
        one = session.partial_run(handle, "Relu:0", {"x:0": image()})
        return one.sum(), session.partial_run(handle, "y:0")


def _eager(_: Any) -> Any:
    from opkernel import raw_ops

    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    return [
        raw_ops.Relu(features=x),
        raw_ops.MatMul(a=x, b=x, transpose_b=True),
        raw_ops.TopKV2(input=x, k=2),
        raw_ops.StringJoin(inputs=["a", "b"]),
        raw_ops.Unique(x=[1, 2, 1]),
        raw_ops.Cumsum(x=x, axis=1),
    ]


def _draw(graph: Any) -> Any:
    return len(graph._repr_html_())


def _counter() -> Any:
    import opkernel
    from opkernel import raw_ops

    with opkernel.Graph().as_default() as graph:
        v = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[4], shared_name="v")
        raw_ops.AssignVariableOp(resource=v, value=np.zeros(4, np.float32), name="init")
        added = raw_ops.AssignAddVariableOp(resource=v, value=np.ones(4, np.float32), name="add")
        with graph.control_dependencies([added]):
            raw_ops.ReadVariableOp(resource=v, dtype=opkernel.float32, name="read")
    return opkernel.Session(graph)


def _count(session: Any) -> Any:
    session.run("init")
    return [session.run("read:0") for _ in range(3)]


def _single_ops(first: int) -> Use:
    """Every 300th of the recorded calls of ops, each as a graph."""

    def prepare() -> Any:
        from tools.campaigns.samples import calls, graph_of_call

        return [graph_of_call(nodes) for nodes in calls()[first::300]]

    def do(graph_defs: Any) -> Any:
        import opkernel

        answers: list[Any] = []
        for graph_def in graph_defs:
            graph = opkernel.Graph()
            try:
                opkernel.import_graph_def(graph_def, name="", graph=graph)
                last = graph.get_operations()[-1]
                if not last.op_def.is_stateful:
                    with opkernel.Session(graph) as session:
                        answers.append(session.run([*last.outputs]))
            except opkernel.errors.OpError as error:
                answers.append(error.code)
        return answers

    return Use(prepare, do)


USES: dict[str, Use] = {
    "run": Use(_session(), _run),
    "run without passes": Use(_session(optimize=False), _run),
    "run by dataflow": Use(_session(executor_type="DATAFLOW"), _run),
    "run on threads": Use(_session(inter_op_threads=2), _run),
    "run within limits": Use(_session(memory_limit_bytes=1 << 28), _run),
    "run by XLA": Use(_session(jit="xla!"), _run),
    "run by OpenVINO": Use(_session(jit="openvino!"), _run),
    "optimize": Use(network, _optimize),
    "load a graph": Use(_nothing, _load_graph),
    "load a SavedModel of TF1": Use(_nothing, _load_saved("v1")),
    "load a SavedModel of TF2": Use(_nothing, _load_saved("v2")),
    "call a SavedModel of TF1": Use(_loaded("v1"), _call_saved),
    "call a SavedModel of TF2": Use(_loaded("v2"), _call_saved),
    "trace": Use(_function, _call_function),
    "gradient": Use(_nothing, _gradient),
    "train": Use(_nothing, _train),
    "save and restore": Use(_checkpoints, _save_and_restore),
    "count": Use(_counter, _count),
    "queue": Use(_queue, _run_queue),
    "partial run": Use(_nothing, _partial),
    "eager": Use(_nothing, _eager),
    "draw": Use(network, _draw),
    **{f"ops {first}": _single_ops(first) for first in range(0, 300, 25)},
    **SERVICES,
}
"""All uses, by name."""
