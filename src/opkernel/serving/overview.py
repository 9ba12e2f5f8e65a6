"""What a server counts, and what its page shows.

It counts requests, their latencies and the sizes of batches, for Prometheus and the page. The page shows the models,
their signatures with requests to begin with, and the latencies.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from contextlib import suppress
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from opkernel.errors import OpError
from opkernel.escaping import json_text
from opkernel.graph import TensorSpec
from opkernel.interop import Signature
from opkernel.serving.model_server import ModelServer
from opkernel.types import DataType

_LATEST = 1000
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """The counts of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("model", "method")
        self._requests = Counter("opkernel_requests", "Requests by HTTP status.", (*labels, "status"), registry=self._registry)  # fmt: skip
        self._seconds = Histogram("opkernel_request_seconds", "What requests took.", labels, registry=self._registry)  # fmt: skip
        self._rows = Histogram("opkernel_batch_rows", "Rows that were run at once.", ("model",), buckets=_ROWS, registry=self._registry)  # fmt: skip
        self._latest: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def note_request(self, model: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered; `model` is empty for one that there is not."""
        self._requests.labels(model, method, str(status)).inc()
        self._seconds.labels(model, method).observe(seconds)
        if status == 200:
            with self._lock:
                self._latest.setdefault(model, deque(maxlen=_LATEST)).append(seconds)

    def note_batch(self, model: str, rows: int) -> None:
        """Count a run of a model."""
        self._rows.labels(model).observe(rows)

    def latencies(self, model: str) -> dict[str, Any]:
        """Quantiles of the latest requests of a model, in milliseconds."""
        with self._lock:
            found = sorted(self._latest.get(model, ()))
        if not found:
            return {"requests": 0}
        last = len(found) - 1
        quantiles = {f"p{n}_ms": round(found[last * n // 100] * 1e3, 3) for n in (50, 90, 99)}
        return {"requests": len(found), **quantiles}

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self._registry)


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
