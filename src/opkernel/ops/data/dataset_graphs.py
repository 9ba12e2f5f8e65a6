"""Datasets as graphs: the nodes that make them, with their inputs as constants, and back.

Each dataset remembers its node (`DatasetBase.made_by`). The graph ends in a `_Retval` called `dataset`.

Source: DatasetToGraphOp and DatasetFromGraphOp in TensorFlow core/kernels/data/dataset_ops.cc; DatasetFingerprint;
DatasetGraphDefBuilder in core/framework/dataset.cc.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.permissions import ORIGIN_ATTR, mark_of, without_origins
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from opkernel.graph import Graph, import_graph_def
from opkernel.graph.functions.graph_to_function import graph_to_function_def
from opkernel.kernel import FunctionRunOptions, InstantiateOptions, OpKernel, OpKernelContext
from opkernel.opdef import GRAPH_DEF_VERSION, full_type
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.data.dataset import DatasetBase, dataset_of
from opkernel.ops.data.dataset_op import MadeBy, declare
from opkernel.ops.registration import register_kernel
from opkernel.proto import AttrValue, DecodeError, GraphDef, NodeDef
from opkernel.types import DataType, object_scalar, tensor_to_proto

__all__ = ["DatasetFromGraphOp", "DatasetToGraphOp"]

_FAIL = 2
"""The policy for functions with state that refuses them; others write them as they are."""
_DUMMIES = {"seed_generator": "DummySeedGenerator", "cache": "DummyMemoryCache"}
"""What stands in a graph for resources, by the input: with these, a dataset makes its own."""
_RESULT = "dataset"

_TYPE_FNS = {
    "DatasetFromGraph": full_type.decode(FullTypeId.TFT_STRING, 0),
    "DatasetToGraphV2": full_type.encode(FullTypeId.TFT_STRING, 0),
}
"""The functions that infer the full types of outputs, by op."""

for _name, _doc in {
    "DatasetToGraph": "The serialized GraphDef of the nodes that make a dataset.",
    "DatasetToGraphV2": "The serialized GraphDef of the nodes that make a dataset.",
    "DatasetFromGraph": "The dataset that the nodes of a serialized GraphDef make.",
    "DatasetFingerprint": "A number that equal datasets have, as far as their graphs are equal.",
}.items():
    declare(_name, doc=_doc, forward_type_fn=_TYPE_FNS.get(_name))


class GraphOfDataset:
    """The graph of a dataset, which is built from its inputs on.

    Args:
        allows_state: Whether functions may have state.
        takes_arguments: Whether tensors become arguments (`_Arg`) of the graph, and not constants in it. Such a graph is
            for this process: it can hold resources and datasets that no node has made, and its nodes keep their
            permissions.

    Attributes:
        graph_def: The graph.
        nodes: Its nodes, by name.
        arguments: The values of its arguments.
    """

    def __init__(self, *, allows_state: bool = True, takes_arguments: bool = False) -> None:
        self.graph_def = GraphDef()
        self.graph_def.versions.producer = GRAPH_DEF_VERSION
        self.nodes: dict[str, NodeDef] = {}
        self.arguments: list[Any] = []
        self._allows_state, self._takes_arguments = allows_state, takes_arguments
        self._names: dict[int, str] = {}

    def add_dataset(self, dataset: DatasetBase) -> str:
        """The name of the node of a dataset, which is added with all that it needs.

        Raises:
            UnimplementedError: no node has made it, or it needs a resource, and the graph takes no arguments.
            FailedPreconditionError: it calls a function with state.
        """
        if id(dataset) in self._names:
            return self._names[id(dataset)]
        made_by = dataset.made_by
        if made_by is None and self._takes_arguments:
            name = self.add_tensor(object_scalar(dataset), DataType.DT_VARIANT)
        elif made_by is None:
            raise UnimplementedError(f"{dataset} cannot be written as a graph: no node has made it")
        else:
            names = [self._add_input(made_by, index) for index in range(len(made_by.inputs))]
            node = NodeDef(op=made_by.node.op, input=names)
            for attr, value in made_by.node.attr.items():
                node.attr[attr].CopyFrom(value)
            if self._takes_arguments:
                node.attr[ORIGIN_ATTR].s = mark_of(made_by.permissions)
            self._add_functions(made_by, node)
            name = self.add(node)
        self._names[id(dataset)] = name
        return name

    def _add_input(self, made_by: MadeBy, index: int) -> str:
        name, value = made_by.input_names[index], made_by.inputs[index]
        dtype = made_by.input_types[index]
        content = value[()] if dtype is DataType.DT_VARIANT and not np.ndim(value) else None
        if isinstance(content, DatasetBase):
            return self.add_dataset(content)
        if dtype is not DataType.DT_RESOURCE or self._takes_arguments:
            return self.add_tensor(value, dtype)
        dummy = _DUMMIES.get(name)
        if dummy is None:
            raise UnimplementedError(
                f"The resource {name!r} of {made_by.node.op} cannot be written in a graph"
            )
        return self.add(NodeDef(op=dummy))

    def add_tensor(self, value: Any, dtype: DataType) -> str:
        """The name of a new node that gives a tensor."""
        if self._takes_arguments:
            attrs = {"T": AttrValue(type=int(dtype)), "index": AttrValue(i=len(self.arguments))}
            self.arguments.append(value)
            return self.add(NodeDef(op="_Arg", attr=attrs))
        proto = tensor_to_proto(np.asarray(value), dtype)
        attrs = {"dtype": AttrValue(type=int(dtype)), "value": AttrValue(tensor=proto)}
        return self.add(NodeDef(op="Const", attr=attrs))

    def add(self, node: NodeDef) -> str:
        """The name of a node, which is added."""
        node.name = f"{node.op.lstrip('_')}/_{len(self.nodes)}"
        self.nodes[node.name] = self.graph_def.node.add()
        self.nodes[node.name].CopyFrom(node)
        return node.name

    def _add_functions(self, made_by: MadeBy, node: NodeDef) -> None:
        if made_by.library is None:
            return
        definitions = made_by.library.get_function_library_definition()
        reached = definitions.reachable_definitions([node])
        known = {function.signature.name for function in self.graph_def.library.function}
        for name in sorted(reached):
            if not self._allows_state and made_by.library.is_stateful(name):
                raise FailedPreconditionError(
                    f"{node.op} calls the function {name!r}, which has state"
                )
            if name not in known:
                self.graph_def.library.function.append(reached[name])

    def finish(self, result: str) -> NodeDef:
        """The node that is added for the result, which is the dataset of a node."""
        attrs = {"T": AttrValue(type=int(DataType.DT_VARIANT)), "index": AttrValue(i=0)}
        self.graph_def.node.append(NodeDef(name=_RESULT, op="_Retval", input=[result], attr=attrs))
        return self.graph_def.node[-1]


def graph_of_dataset(dataset: DatasetBase, *, allows_state: bool = True) -> GraphDef:
    """The nodes that make a dataset.

    Raises:
        UnimplementedError: a dataset that it is made from was not made by a node, or needs a resource.
        FailedPreconditionError: it calls a function with state, where that is not allowed.
    """
    graph = GraphOfDataset(allows_state=allows_state)
    graph.finish(graph.add_dataset(dataset))
    return without_origins(graph.graph_def)


def fingerprint_of(dataset: DatasetBase) -> int:
    """A number of 64 bits that datasets with equal graphs share; raises as `graph_of_dataset`."""
    content = graph_of_dataset(dataset).SerializeToString(deterministic=True)
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


@register_kernel("DatasetToGraph", "DatasetToGraphV2")
class DatasetToGraphOp(OpKernel):
    """Gives the graph of a dataset."""

    def compute(self, ctx: OpKernelContext) -> None:
        construction = self._construction
        if self.type_string == "DatasetToGraph":
            allows_state = construction.get_attr("allow_stateful")
        else:
            allows_state = construction.get_attr("external_state_policy") != _FAIL
        graph_def = graph_of_dataset(dataset_of(ctx.input(0)), allows_state=allows_state)
        if construction.get_attr("strip_device_assignment"):
            for node in graph_def.node:
                node.device = ""
        ctx.set_output(0, object_scalar(graph_def.SerializeToString(deterministic=True)))

    def __init__(self, construction: Any) -> None:
        super().__init__(construction)
        self._construction = construction


@register_kernel("DatasetFingerprint")
class DatasetFingerprintOp(OpKernel):
    """Gives the number of a dataset's graph."""

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, np.uint64(fingerprint_of(dataset_of(ctx.input(0)))))


@register_kernel("DatasetFromGraph")
class DatasetFromGraphOp(OpKernel):
    """Runs a graph that makes a dataset."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Run it.

        Raises:
            InvalidArgumentError: it is no GraphDef, or gives no dataset.
        """
        ctx.set_output(0, run_graph(ctx, _graph_of(ctx.input(0)), []))


def run_graph(ctx: OpKernelContext, graph: Graph, arguments: Sequence[Any]) -> Any:
    """The tensor of the dataset that a graph makes.

    Args:
        ctx: The computation that asks for it.
        graph: The graph.
        arguments: The values of its `_Arg` nodes.

    Raises:
        InvalidArgumentError: it gives no dataset.
    """
    function = graph_to_function_def(graph, "DatasetFromGraph", append_hash_to_fn_name=True)
    if [arg.type for arg in function.signature.output_arg] != [int(DataType.DT_VARIANT)]:
        raise InvalidArgumentError("The graph of a dataset has one `_Retval`, of a variant")
    library, functions = ctx.function_library, graph.function_library
    functions.add_function(function)
    options = InstantiateOptions(lib_def=functions)
    handle = library.instantiate(function.signature.name, {}, options)
    (made,) = library.run(FunctionRunOptions(step=ctx.step), handle, arguments)
    dataset_of(made)
    return made


def _graph_of(tensor: Any) -> Graph:
    """The graph of a serialized GraphDef.

    Raises:
        InvalidArgumentError: it is none.
    """
    text = tensor.item() if tensor.size == 1 else None
    try:
        graph_def = GraphDef.FromString(text if isinstance(text, bytes) else b"\xff")
    except DecodeError as error:
        raise InvalidArgumentError("graph_def is no serialized GraphDef") from error
    graph = Graph()
    import_graph_def(_with_dummies(without_origins(graph_def)), name="", graph=graph)
    return graph


def _with_dummies(graph_def: GraphDef) -> GraphDef:
    """The graph without handles to resources of the process that wrote it: TensorFlow writes these as constants."""
    users = {name: node.op for node in graph_def.node for name in node.input}
    for node in graph_def.node:
        if node.op == "Const" and node.attr["dtype"].type == DataType.DT_RESOURCE:
            is_cache = users.get(node.name, "").startswith("Cache")
            node.op = _DUMMIES["cache" if is_cache else "seed_generator"]
            node.ClearField("attr")
    return graph_def
