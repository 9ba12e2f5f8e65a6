"""The metadata of a model: its signatures as TensorFlow Serving writes them in JSON.

Source: TensorFlow Serving servables/tensorflow/get_model_metadata_impl.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict

from opkernel.proto import SignatureDef, TensorInfo, TensorShapeProto
from opkernel.serving.servable import Servable
from opkernel.types import DataType


def model_metadata(servable: Servable) -> dict[str, Any]:
    """The metadata of a version of a model."""
    definitions = servable.model.meta_graph.signature_def
    signatures = {name: _signature(definitions[name]) for name in sorted(definitions)}
    return {
        "model_spec": {
            "name": servable.name,
            "signature_name": "",
            "version": str(servable.version),
        },
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _signature(definition: SignatureDef) -> dict[str, Any]:
    return {
        "inputs": _tensors(definition.inputs),
        "outputs": _tensors(definition.outputs),
        "method_name": definition.method_name,
        "defaults": {
            name: MessageToDict(definition.defaults[name], preserving_proto_field_name=True)
            for name in sorted(definition.defaults)
        },
    }


def _tensors(infos: Mapping[str, TensorInfo]) -> dict[str, Any]:
    return {name: _tensor(infos[name]) for name in sorted(infos)}


def _tensor(info: TensorInfo) -> dict[str, Any]:
    described: dict[str, Any] = {
        "dtype": _dtype(info.dtype),
        "tensor_shape": _shape(info.tensor_shape),
    }
    encoding = info.WhichOneof("encoding")
    if encoding == "coo_sparse":
        sparse = info.coo_sparse
        names = ("values_tensor_name", "indices_tensor_name", "dense_shape_tensor_name")
        described["coo_sparse"] = {name: getattr(sparse, name) for name in names}
    elif encoding == "composite_tensor":
        parts = [_tensor(one) for one in info.composite_tensor.components]
        described["composite_tensor"] = {"components": parts}
    else:
        described["name"] = info.name
    return described


def _shape(shape: TensorShapeProto) -> dict[str, Any]:
    dims = [{"size": str(dim.size), "name": dim.name} for dim in shape.dim]
    return {"dim": dims, "unknown_rank": shape.unknown_rank}


def _dtype(number: int) -> str:
    try:
        return DataType(number).name
    except ValueError:
        return str(number)
