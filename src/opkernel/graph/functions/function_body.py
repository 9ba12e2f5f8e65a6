"""instantiate_function: an instance of a function as a graph that the runtime can run.

Source: TensorFlow core/common_runtime/function_def_utils.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.node import by_index
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import ARG_OPS, RETVAL_OPS, STRUCTURAL_OPS
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.functions.instantiate import instantiate_nodes
from opkernel.graph.io.importer import GraphImporter, ImportOptions
from opkernel.opdef.core.attr_value import IN_MUST_COMPILE
from opkernel.proto import AttrValue, FunctionDef, GraphDef, NameAttrList
from opkernel.records import dataclass
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.graph.functions.function_library import FunctionLibraryDefinition

_MARKS = ("_XlaMustCompile", IN_MUST_COMPILE)

_RUN_ON_DEMAND = STRUCTURAL_OPS | {"Placeholder"}
"""Ops with state that run where something needs them, and for nothing else."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionBody:
    """A function with its attrs filled in.

    Attributes:
        function_def: the function.
        attrs: the attrs that it was instantiated with.
        graph: the body; its inputs are `_Arg` nodes, its outputs `_Retval` nodes. The functions
            that it calls are those of the library that it came from.
        arg_types, ret_types: one for each tensor.
        arg_nodes, ret_nodes: the `_Arg` and `_Retval` nodes in the order of their index.
        control_ret_nodes: what has to run though no result depends on it.
    """

    function_def: FunctionDef
    attrs: Mapping[str, AttrValue]
    graph: Graph
    arg_types: tuple[DataType, ...]
    ret_types: tuple[DataType, ...]
    arg_nodes: tuple[Operation, ...]
    ret_nodes: tuple[Operation, ...]
    control_ret_nodes: tuple[Operation, ...]

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function_def.signature.name

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the arguments are fed to."""
        return tuple([node.outputs[0] for node in self.arg_nodes])

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that are the results."""
        return tuple([node.inputs[0] for node in self.ret_nodes])

    @property
    def targets(self) -> tuple[Operation, ...]:
        """The operations that run for their effects, whether or not a result needs them."""
        stateful = [
            op
            for op in self.graph.get_operations()
            if op.op_def.is_stateful and op.type not in _RUN_ON_DEMAND
        ]
        return (*self.control_ret_nodes, *stateful)


def instantiate_function(
    library: FunctionLibraryDefinition,
    function: str | NameAttrList | FunctionDef,
    attrs: Mapping[str, AttrValue] | None = None,
) -> FunctionBody:
    """The body of a function.

    Args:
        library: where its name, and those of the functions that it calls, are looked up.
        function: its name, the value of an attr that names it, or the function itself.
        attrs: values for the attrs of its signature, over those of a NameAttrList.

    Raises:
        NotFoundError: there is no such function, an attr is missing, or an op is not registered.
        InvalidArgumentError: a node of the function breaks a rule.
    """
    return instantiate_into(Graph(function_library=library), function, attrs)


def instantiate_into(
    graph: Graph,
    function: str | NameAttrList | FunctionDef,
    attrs: Mapping[str, AttrValue] | None = None,
) -> FunctionBody:
    """The body of a function, in an empty graph.

    The function, and those that it calls, are looked up in the library of the graph.

    Raises:
        NotFoundError: there is no such function, an attr is missing, or an op is not registered.
        InvalidArgumentError: a node of the function breaks a rule.
    """
    library = graph.function_library
    bound = dict(attrs or {})
    if isinstance(function, NameAttrList):
        bound = {**function.attr, **bound}
        function = function.name
    function_def = library.get_function(function) if isinstance(function, str) else function
    result = instantiate_nodes(function_def, bound, lambda op: library.look_up(op).op_def)
    graph_def = GraphDef(versions=graph.graph_def_versions)
    graph_def.node.extend(result.nodes)
    if any(_is_set(attrs, name) for attrs in (function_def.attr, bound) for name in _MARKS):
        _mark(graph_def)
    options = ImportOptions(
        validate_nodes=False, validate_colocation=False, allow_internal_names=True, origin=None
    )
    GraphImporter(graph, graph_def, options).prepare().commit()
    return FunctionBody(
        function_def=function_def,
        attrs=bound,
        graph=graph,
        arg_types=tuple(result.arg_types),
        ret_types=tuple(result.ret_types),
        arg_nodes=tuple(by_index(graph, ARG_OPS)),
        ret_nodes=tuple(by_index(graph, RETVAL_OPS)),
        control_ret_nodes=_control_returns(function_def, graph),
    )


def _is_set(attrs: Mapping[str, AttrValue], name: str) -> bool:
    return name in attrs and attrs[name].b


def _mark(graph_def: GraphDef) -> None:
    """Say of nodes, and of the functions that they call, that they are in a call that has to be compiled."""
    for node in graph_def.node:
        called = [one.func for one in node.attr.values() if one.HasField("func")]
        called += [func for one in node.attr.values() for func in one.list.func]
        for attrs in (node.attr, *(func.attr for func in called)):
            attrs[IN_MUST_COMPILE].b = True


def _control_returns(function_def: FunctionDef, graph: Graph) -> tuple[Operation, ...]:
    names = [function_def.control_ret.get(one) for one in function_def.signature.control_output]
    names += [n for key, n in sorted(function_def.control_ret.items()) if n not in names]
    nodes = []
    for name in names:
        node = None if name is None else graph.by_name.get(name)
        if node is None:
            raise InvalidArgumentError(
                f"Function '{function_def.signature.name}' returns control from node {name!r}, "
                f"which it does not have"
            )
        nodes.append(node)
    return tuple(nodes)
