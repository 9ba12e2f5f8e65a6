"""What a server counts: requests, their latencies, the sizes of batches; for Prometheus and its page."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

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
