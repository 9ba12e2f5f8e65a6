"""serving_graph: the graph of a MetaGraph, for loaders that run sessions and know no objects.

It has the variables, a placeholder for each input of a signature, a call of its function, and a Saver.

Source: TensorFlow python/saved_model/save.py, core/protobuf/saver.proto, meta_graph.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opkernel import raw_ops
from opkernel.checkpoint.object_graph import OBJECT_GRAPH_KEY
from opkernel.graph import Graph, Tensor, constant, placeholder
from opkernel.interop.saved_functions import NamedFunction
from opkernel.proto import AttrValue, MetaGraphDef, NameAttrList, SignatureDef, TensorInfo
from opkernel.training import Variable
from opkernel.types import DataType

__all__ = ["ServingGraph"]

_PREDICT = "tensorflow/serving/predict"
_INIT_OP = "__saved_model_init_op"


class ServingGraph:
    """Builds the graph and what a MetaGraph says of it.

    Args:
        meta_graph: Gets it all.
        variables: The variables by their keys in the checkpoint.
        constants: Other values that functions take from outside, by the names of their nodes.
    """

    def __init__(
        self,
        meta_graph: MetaGraphDef,
        variables: Mapping[str, Variable],
        constants: Mapping[str, Any],
        functions: Sequence[Any],
    ) -> None:
        self._meta_graph = meta_graph
        self._graph = Graph()
        for function in functions:
            if function.signature.name not in self._graph.function_library:
                self._graph.function_library.add_function(function)
        self._tensors: dict[Any, Tensor] = {}
        with self._graph.as_default():
            for key, variable in variables.items():
                self._tensors[variable] = self._handle(key, variable)
            for name, value in constants.items():
                self._tensors[value] = constant(
                    value.captured_value, value.captured_spec[0], name=name
                )

    def add_signature(self, name: str, function: NamedFunction) -> None:
        """Add a signature that calls a function."""
        inputs: dict[str, TensorInfo] = {}
        with self._graph.as_default():
            given = []
            for tensor in function.arguments:
                key = tensor.op.name
                fed = placeholder(tensor.dtype, tensor.shape, name=f"{name}_{key}")
                inputs[key] = _info(fed)
                given.append(fed)
            outputs = self._call(function, given)
        definition = SignatureDef(method_name=_PREDICT)
        names = sorted(function.concrete.graph.structured_outputs)
        for key, info in inputs.items():
            definition.inputs[key].CopyFrom(info)
        for key, tensor in zip(names, outputs, strict=True):
            definition.outputs[key].CopyFrom(_info(tensor))
        self._meta_graph.signature_def[name].CopyFrom(definition)

    def finish(self, variables: Mapping[str, Variable], object_graph: bytes) -> None:
        """Add the Saver and the initialisation, and write the graph into the MetaGraph.

        Args:
            variables: The variables by their keys in the checkpoint.
            object_graph: What the checkpoint says of the objects; the Saver writes it, too.
        """
        with self._graph.as_default():
            initialise = self._graph.create_op("NoOp", name="NoOp")
            self._add_saver(variables, object_graph)
        meta_graph = self._meta_graph
        meta_graph.graph_def.CopyFrom(self._graph.as_graph_def())
        meta_graph.collection_def["saved_model_main_op"].node_list.value.append(initialise.name)
        output = meta_graph.signature_def[_INIT_OP].outputs[_INIT_OP]
        output.name = initialise.name
        output.tensor_shape.unknown_rank = True

    def _handle(self, key: str, variable: Variable) -> Tensor:
        name = key.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE")
        handle: Tensor = raw_ops.VarHandleOp(
            dtype=variable.dtype,
            shape=variable.shape,
            shared_name=name,
            name="".join(char if char.isalnum() or char in "._/" else "_" for char in name).strip(
                "_./"
            )
            or "Variable",
        )
        return handle

    def _call(self, function: NamedFunction, given: Sequence[Tensor]) -> list[Tensor]:
        body = function.concrete.graph
        op = self._graph.create_op(
            "StatefulPartitionedCall",
            [[*given, *[self._tensors[value] for value in function.captured]]],
            attrs={
                "Tin": [tensor.dtype for tensor in body.inputs],
                "Tout": [tensor.dtype for tensor in body.outputs],
                "f": AttrValue(func=NameAttrList(name=function.name)),
            },
        )
        for tensor, inside in zip(op.outputs, body.outputs, strict=True):
            tensor.set_shape(inside.shape)
        return [*op.outputs]

    def _add_saver(self, variables: Mapping[str, Variable], object_graph: bytes) -> None:
        filename = placeholder(DataType.DT_STRING, [], name="saver_filename")
        saver = self._meta_graph.saver_def
        saver.filename_tensor_name = filename.name
        saver.version = saver.V2
        names, handles = [*variables], [self._tensors[v] for v in variables.values()]
        types = [variable.dtype for variable in variables.values()]
        reads = [
            raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
            for handle, dtype in zip(handles, types, strict=True)
        ]
        saved = raw_ops.SaveV2(
            prefix=filename,
            tensor_names=[*names, OBJECT_GRAPH_KEY],
            shape_and_slices=[""] * (len(names) + 1),
            tensors=[*reads, constant(object_graph, DataType.DT_STRING)],
        )
        restored: list[Any] = []
        if names:
            values = raw_ops.RestoreV2(
                prefix=filename,
                tensor_names=names,
                shape_and_slices=[""] * len(names),
                dtypes=types,
            )
            restored = [
                raw_ops.AssignVariableOp(resource=handle, value=value)
                for handle, value in zip(handles, values, strict=True)
            ]
        with self._graph.control_dependencies([saved]):
            saver.save_tensor_name = raw_ops.Identity(input=filename, name="saver_saved").name
        with self._graph.control_dependencies(restored):
            saver.restore_op_name = self._graph.create_op("NoOp", name="saver_restored").name


def _info(tensor: Tensor) -> TensorInfo:
    return TensorInfo(name=tensor.name, dtype=tensor.dtype, tensor_shape=tensor.shape.to_proto())
