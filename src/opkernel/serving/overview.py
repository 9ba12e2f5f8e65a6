"""What the page shows: the models, their signatures with requests to begin with, their latencies."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.escaping import json_text
from opkernel.graph import TensorSpec
from opkernel.interop import Signature
from opkernel.serving.metrics import Metrics
from opkernel.serving.model_server import ModelServer
from opkernel.types import DataType

_MOST_ELEMENTS = 4096
"""Of an input in a request to begin with; larger ones are left empty."""


def overview(server: ModelServer, metrics: Metrics) -> dict[str, Any]:
    """The models of a server as JSON."""
    return {"models": [_model(name, server, metrics) for name in server.names]}


def _model(name: str, server: ModelServer, metrics: Metrics) -> dict[str, Any]:
    signatures: dict[str, Any] = {}
    if server.versions(name):
        with suppress(OpError), server.use(name) as servable:
            signatures = {key: _signature(one) for key, one in servable.model.signatures.items()}
    return {
        "name": name,
        "versions": [one.as_json() for one in server.statuses(name)],
        "signatures": signatures,
        "latencies": metrics.latencies(name),
    }


def _signature(signature: Signature) -> dict[str, str]:
    method = signature.method_name.rpartition("/")[2]
    if method in ("classify", "regress"):
        example: dict[str, Any] = {"examples": [{}]}
    else:
        method = "predict"
        example = {"inputs": {name: _value(spec) for name, spec in signature.inputs.items()}}
    return {"text": repr(signature), "method": method, "example": json_text(example)}


def _value(spec: Any) -> Any:
    """One row of nothing, for an input."""
    if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
        return []
    shape = [1 if size is None else size for size in spec.shape.as_list()]
    if math.prod(shape) > _MOST_ELEMENTS:
        return []
    return np.full(shape, _zero(spec.dtype), object).tolist()


def _zero(dtype: DataType | None) -> Any:
    if dtype is DataType.DT_STRING:
        return ""
    if dtype is DataType.DT_BOOL:
        return False
    return 0.0 if dtype is not None and dtype.is_floating else 0
