"""Signatures of models of TF2: functions that take tensors by keyword, and give a dict.

Source: TensorFlow python/saved_model/signature_serialization.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opkernel.errors import DataLossError
from opkernel.graph import TensorSpec
from opkernel.interop.loaded_function import LoadedConcreteFunction
from opkernel.interop.saved_model.composite import CompositeSpec, CompositeValue
from opkernel.interop.signature import Signature
from opkernel.proto import SignatureDef
from opkernel.types import tensor_from_proto


def object_signature(
    name: str,
    function: LoadedConcreteFunction,
    keywords: Sequence[str],
    definition: SignatureDef,
) -> Signature:
    """The signature that a function computes.

    Args:
        name: Its name.
        function: The function.
        keywords: The names of its inputs, in their order.
        definition: What the graph of the model says of it.

    Raises:
        DataLossError: the function takes or gives something without a name, or no tensors.
    """
    _, named = function.input_signature
    by_name = {_name(spec, key): (key, spec) for key, spec in named.items()}
    inputs = {key: by_name.get(key, (key, TensorSpec(None))) for key in keywords}
    given = {} if function.output_signature is None else function.output_signature
    if not isinstance(given, Mapping) or len(inputs) != len(keywords):
        raise DataLossError(f"signature {name!r} has inputs or outputs without names")

    def run(values: dict[str, Any]) -> dict[str, Any]:
        found = function.call([values[keyword] for keyword in keywords])
        return {key: _parts(value) for key, value in found.items()} if given else {}

    return Signature(
        name,
        {key: _described(name, spec) for key, (_, spec) in inputs.items()},
        {key: _described(name, spec) for key, spec in given.items()},
        run,
        method_name=definition.method_name,
        defaults={key: tensor_from_proto(value) for key, value in definition.defaults.items()},
        keywords={python_name: key for key, (python_name, _) in inputs.items()},
    )


def _name(spec: Any, key: str) -> str:
    return (spec.name if isinstance(spec, TensorSpec) else None) or key


def _described(name: str, spec: Any) -> Any:
    """What a signature says of an input or output."""
    if isinstance(spec, CompositeSpec):
        return spec.components
    if isinstance(spec, TensorSpec):
        return spec
    raise DataLossError(f"signature {name!r} takes or gives {spec!r}, which is no tensor")


def _parts(value: Any) -> Any:
    return value.parts if isinstance(value, CompositeValue) else value
