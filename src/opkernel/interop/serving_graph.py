"""serving_graph: the graph of a MetaGraph, for loaders that run sessions and know no objects.

It has the variables, a placeholder for each input of a signature, a call of its function, and a Saver.

Source: TensorFlow python/saved_model/save.py, core/protobuf/saver.proto, meta_graph.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opkernel import raw_ops
from opkernel.checkpoint.object_graph import OBJECT_GRAPH_KEY
from opkernel.graph import Graph, Operation, Tensor, constant, placeholder
from opkernel.graph.io.signature_names import INIT_OP_SIGNATURE
from opkernel.interop.saved_functions import NamedFunction
from opkernel.proto import AttrValue, MetaGraphDef, NameAttrList, SignatureDef, TensorInfo
from opkernel.training import Variable
from opkernel.training.resource import PARTS_OF_TABLE, Asset, Resource
from opkernel.types import DataType

_PREDICT = "tensorflow/serving/predict"


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
        self._resources: list[SavedResource] = []
        self._initialisers: list[Operation] = []
        with self._graph.as_default():
            for key, variable in variables.items():
                self._tensors[variable] = self._handle(key, variable)
            for name, value in constants.items():
                self._tensors[value] = constant(
                    "" if isinstance(value, Asset) else value.captured_value,
                    value.captured_spec[0],
                    name=name,
                )

    def add_resources(self, resources: Sequence[SavedResource]) -> None:
        """Add tables and other resources: they are created, filled at the start, and restored."""
        self._resources = [*resources]
        with self._graph.as_default():
            for one in resources:
                (self._tensors[one.resource],) = self._call(one.create, []).outputs
            filled = [one.fill for one in resources if one.fill is not None]
            self._initialisers = [self._call(fill, []) for fill in filled]

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
            outputs = self._call(function, given).outputs
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
            with self._graph.control_dependencies(self._initialisers):
                initialise = self._graph.create_op("NoOp", name="NoOp")
            self._add_saver(variables, object_graph)
        meta_graph = self._meta_graph
        meta_graph.graph_def.CopyFrom(self._graph.as_graph_def())
        meta_graph.collection_def["saved_model_main_op"].node_list.value.append(initialise.name)
        output = meta_graph.signature_def[INIT_OP_SIGNATURE].outputs[INIT_OP_SIGNATURE]
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

    def _call(self, function: NamedFunction, given: Sequence[Tensor]) -> Operation:
        reference = AttrValue(func=NameAttrList(name=function.name))
        arguments = [*given, *[self._tensors[value] for value in function.captured]]
        create_call = function.concrete.graph.create_call
        return create_call(self._graph, "StatefulPartitionedCall", reference, arguments)

    def _read(self, variable: Variable) -> Tensor:
        value: Tensor = raw_ops.ReadVariableOp(
            resource=self._tensors[variable], dtype=variable.dtype
        )
        return value

    def _contents(self, one: SavedResource) -> list[_Content]:
        """What is saved of a resource: keys and values of tables."""
        handle, found = self._tensors[one.resource], []
        for key, attribute in one.attributes.items():
            types = one.resource.content_types(attribute)
            tensors = raw_ops.LookupTableExportV2(
                table_handle=handle, Tkeys=types["Tkeys"], Tvalues=types["Tvalues"]
            )
            reads = {key + end: tensor for end, tensor in zip(PARTS_OF_TABLE, tensors, strict=True)}
            found.append(_Content(handle, reads))
        return found

    def _add_saver(self, variables: Mapping[str, Variable], object_graph: bytes) -> None:
        filename = placeholder(DataType.DT_STRING, [], name="saver_filename")
        saver = self._meta_graph.saver_def
        saver.filename_tensor_name = filename.name
        saver.version = saver.V2
        reads = {key: self._read(variable) for key, variable in variables.items()}
        contents = [content for one in self._resources for content in self._contents(one)]
        for content in contents:
            reads |= content.reads
        saved = raw_ops.SaveV2(
            prefix=filename,
            tensor_names=[*reads, OBJECT_GRAPH_KEY],
            shape_and_slices=[""] * (len(reads) + 1),
            tensors=[*reads.values(), constant(object_graph, DataType.DT_STRING)],
        )
        restored: list[Any] = []
        if reads:
            found = raw_ops.RestoreV2(
                prefix=filename,
                tensor_names=[*reads],
                shape_and_slices=[""] * len(reads),
                dtypes=[tensor.dtype for tensor in reads.values()],
            )
            by_key = dict(zip(reads, found, strict=True))
            restored = [
                raw_ops.AssignVariableOp(resource=self._tensors[variable], value=by_key[key])
                for key, variable in variables.items()
            ]
            for content in contents:
                keys, values = (by_key[key] for key in content.reads)
                restored.append(
                    raw_ops.LookupTableImportV2(
                        table_handle=content.handle, keys=keys, values=values
                    )
                )
        with self._graph.control_dependencies([saved]):
            saver.save_tensor_name = raw_ops.Identity(input=filename, name="saver_saved").name
        with self._graph.control_dependencies(restored):
            saver.restore_op_name = self._graph.create_op("NoOp", name="saver_restored").name


class SavedResource(NamedTuple):
    """A resource, the functions that create and fill it, and the attributes to save by their keys."""

    resource: Resource
    create: NamedFunction
    fill: NamedFunction | None
    attributes: Mapping[str, str]


class _Content(NamedTuple):
    """What is saved of a table."""

    handle: Tensor
    reads: dict[str, Tensor]


def _info(tensor: Tensor) -> TensorInfo:
    return TensorInfo(name=tensor.name, dtype=tensor.dtype, tensor_shape=tensor.shape.to_proto())
