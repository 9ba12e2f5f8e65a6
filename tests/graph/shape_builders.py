"""Graphs of real ops for tests of shape inference: tensors, loops and functions in few words."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.graph import Graph, Tensor, graph_to_function_def
from opkernel.opdef import DimensionHandle
from opkernel.proto import NameAttrList
from opkernel.types import DataType, float32, int32

Body = Callable[..., Sequence[Tensor] | Tensor]
Shape = list[int | None] | None


def placeholder(
    graph: Graph, shape: Any = None, dtype: DataType = float32, name: str = ""
) -> Tensor:
    attrs = {"dtype": dtype, "shape": shape}
    return graph.create_op("Placeholder", attrs=attrs, name=name or None).outputs[0]


def constant(graph: Graph, value: object, dtype: DataType = int32) -> Tensor:
    attrs = {"value": np.asarray(value, dtype.numpy_dtype), "dtype": dtype}
    return graph.create_op("Const", attrs=attrs).outputs[0]


def op(graph: Graph, type_: str, *inputs: object, **attrs: Any) -> Tensor:
    """The first output of a new operation; `name` among the attrs is its name."""
    name = attrs.pop("name", None)
    return graph.create_op(type_, inputs, attrs=attrs, name=name).outputs[0]


def element(graph: Graph, vector: Tensor, index: int) -> Tensor:
    """`vector[index]`."""
    return op(graph, "StridedSlice", vector, [index], [index + 1], [1], shrink_axis_mask=1)


def dims(graph: Graph, tensor: Tensor, inputs: Any = None) -> Shape:
    """What is inferred of a shape: a list of sizes and Nones; None for an unknown rank."""
    shape = graph.infer_shapes(inputs)[tensor]
    return None if shape.rank is None else shape.as_list()


def known_dims(graph: Graph, *tensors: Tensor) -> list[tuple[DimensionHandle, ...]]:
    """The dimensions of tensors in one inference; an unknown one may be that of another."""
    refiner = graph.infer_shapes().refiner
    shapes = [refiner.shape_handle((tensor.op, tensor.value_index)) for tensor in tensors]
    return [shape.dims for shape in shapes if shape.dims is not None]


def v1_loop(
    graph: Graph, variables: Sequence[Tensor], body: Body, frame: str = "f"
) -> list[Tensor]:
    """A loop of TensorFlow 1 over variables, as Python's while_loop makes it; its results."""
    with graph.name_scope(frame):
        enters = [op(graph, "Enter", v, frame_name=frame) for v in variables]
        merges = [graph.create_op("Merge", [[e, e]]) for e in enters]
        go_on = op(graph, "LoopCond", constant(graph, True, DataType.DT_BOOL))
        switches = [graph.create_op("Switch", [m.outputs[0], go_on]) for m in merges]
        results = body(*[op(graph, "Identity", s.outputs[1]) for s in switches])
        results = [results] if isinstance(results, Tensor) else results
        for merge, result in zip(merges, results, strict=True):
            merge.update_input(1, op(graph, "NextIteration", result))
        return [op(graph, "Exit", s.outputs[0]) for s in switches]


def function(graph: Graph, name: str, types: Sequence[DataType], body: Body) -> NameAttrList:
    """Add a function to the library of a graph; what an attr that names it holds."""
    inner = Graph(function_library=graph.function_library)
    arguments = [
        op(inner, "_Arg", T=dtype, index=index, name=f"a{index}")
        for index, dtype in enumerate(types)
    ]
    results = body(inner, *arguments)
    results = [results] if isinstance(results, Tensor) else list(results)
    definition = graph_to_function_def(inner, name, arguments, results)
    graph.function_library.add_function(definition)
    return NameAttrList(name=name)


def while_loop(graph: Graph, variables: Sequence[Tensor], body: Body, **attrs: Any) -> list[Tensor]:
    """A StatelessWhile with this body."""
    types = [variable.dtype for variable in variables]
    count = len(graph.function_library)
    go_on = function(
        graph, f"cond_{count}", types, lambda g, *_: constant(g, False, DataType.DT_BOOL)
    )
    attrs |= {"cond": go_on, "body": function(graph, f"body_{count}", types, body)}
    return list(graph.create_op("StatelessWhile", [list(variables)], attrs=attrs).outputs)
