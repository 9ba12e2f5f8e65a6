"""Signatures of TensorFlow.js models that say less than TensorFlow's: the graph tells the rest.

TensorFlow.js reads only the names of a signature, and takes the placeholders and the ends of the graph where there are none.

Source: TensorFlow.js tfjs-converter/src/operations/operation_mapper.ts (transformGraph, mapSignatureEntries).
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING

from opkernel.errors import OpError
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.edit.interface import graph_inputs, graph_outputs
from opkernel.graph.io.importer import GraphImporter, ImportOptions
from opkernel.proto import GraphDef, SignatureDef, TensorInfo

if TYPE_CHECKING:
    from opkernel.graph.inference.graph_shapes import GraphShapes


def complete_signature(signature: SignatureDef, graph_def: GraphDef) -> None:
    """Fill in what a signature lacks: inputs or outputs, the types and shapes of its tensors, their names in full.

    Args:
        signature: The signature; is changed.
        graph_def: The graph.
    """
    infos = [*signature.inputs.values(), *signature.outputs.values()]
    if signature.inputs and signature.outputs and all(map(_is_complete, infos)):
        return
    try:
        graph = _imported(graph_def)
        shapes = graph.infer_shapes()
    except OpError:
        return  # whoever imports the graph tells the error
    _complete(signature.inputs, graph_inputs(graph), graph, shapes)
    _complete(signature.outputs, graph_outputs(graph), graph, shapes)


def _is_complete(info: TensorInfo) -> bool:
    return bool(info.dtype) and info.HasField("tensor_shape") and ":" in info.name


def _imported(graph_def: GraphDef) -> Graph:
    copied, graph = GraphDef(), Graph()
    copied.CopyFrom(graph_def)
    options = ImportOptions(
        allow_unregistered=True, allow_internal_names=True, fill_empty_attrs=True
    )
    GraphImporter(graph, copied, options).prepare().commit()
    return graph


def _complete(
    infos: MutableMapping[str, TensorInfo],
    tensors: Iterable[Tensor],
    graph: Graph,
    shapes: GraphShapes,
) -> None:
    """Complete inputs or outputs; without any, they become these tensors, named as the converter names them."""
    if not infos:
        for tensor in tensors:
            infos[tensor.name].name = tensor.name
    for info in infos.values():
        name = info.name if ":" in info.name else f"{info.name}:0"
        with suppress(
            OpError, ValueError
        ):  # a missing tensor is told to whoever uses the signature
            if not _is_complete(info):
                tensor = graph.get_tensor_by_name(name)
                info.name, info.dtype = name, tensor.dtype
                info.tensor_shape.CopyFrom(shapes[tensor].to_proto())
