"""Batcher: calls that come at the same time, joined along the first axis and run once.

The first call of a batch leads it: it waits until the batch is full or its time is over, and runs it.
Where that fails, or the outputs cannot be split, each call runs by itself, so that a bad call
harms no other.

Source: TensorFlow Serving batching/batching_session.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from opkernel.device.budget import check_time, current_budget
from opkernel.errors import OpError
from opkernel.graph import TensorSpec
from opkernel.interop import Signature

Tensors = Mapping[str, Any]


class _Batch:
    """Calls that are joined.

    Attributes:
        rows: The first sizes of the calls, in their order.
        is_full: Set when no further call joins.
        is_done: Set when `outputs` has those of each call, or none.
    """

    def __init__(self) -> None:
        self.calls: list[Tensors] = []
        self.rows: list[int] = []
        self.outputs: list[dict[str, Any]] | None = None
        self.is_full = threading.Event()
        self.is_done = threading.Event()

    def add(self, inputs: Tensors, rows: int) -> int:
        """Let a call join; the result is its number."""
        self.calls.append(inputs)
        self.rows.append(rows)
        return len(self.calls) - 1


class Batcher:
    """Runs a signature.

    Args:
        signature: The signature.
        max_rows: The most rows of a batch.
        wait_s: How long the first call of a batch waits for others.
        observe: Told the number of rows whenever the signature runs.
    """

    def __init__(
        self,
        signature: Signature,
        max_rows: int,
        wait_s: float,
        observe: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._signature = signature
        self._max_rows = max_rows
        self._wait_s = wait_s
        self._observe = observe
        self._joins = max_rows > 1 and _has_open_first_sizes(signature)
        self._open: dict[Hashable, _Batch] = {}
        self._lock = threading.Lock()

    def run(self, inputs: Tensors) -> dict[str, Any]:
        """The outputs of a call."""
        rows = _rows(inputs) if self._joins else None
        if rows is None or not 0 < rows < self._max_rows:
            return self._run_alone(inputs, rows or 1)
        key = tuple((name, x.dtype, x.shape[1:]) for name, x in sorted(inputs.items()))
        batch, number = self._joined(key, inputs, rows)
        if number == 0:
            self._lead(key, batch)
        elif not batch.is_done.wait(_seconds_left()):
            check_time("waiting for a batch")
        if batch.outputs is None:
            return self._run_alone(inputs, rows)
        return batch.outputs[number]

    def _joined(self, key: Hashable, inputs: Tensors, rows: int) -> tuple[_Batch, int]:
        """The batch that a call joins, and its number in it."""
        with self._lock:
            batch = self._open.get(key)
            if batch is not None and sum(batch.rows) + rows > self._max_rows:
                batch.is_full.set()
                batch = None
            if batch is None:
                batch = self._open[key] = _Batch()
            number = batch.add(inputs, rows)
            if sum(batch.rows) == self._max_rows:
                del self._open[key]
                batch.is_full.set()
            return batch, number

    def _lead(self, key: Hashable, batch: _Batch) -> None:
        try:
            batch.is_full.wait(self._wait_s)
            with self._lock:
                if self._open.get(key) is batch:
                    del self._open[key]
            if len(batch.calls) > 1:
                batch.outputs = self._run_together(batch)
        except OpError:
            batch.outputs = None  # each call finds its own error
        finally:
            batch.is_done.set()

    def _run_together(self, batch: _Batch) -> list[dict[str, Any]] | None:
        joined = {name: np.concatenate([one[name] for one in batch.calls]) for name in batch.calls[0]}  # fmt: skip
        total = sum(batch.rows)
        outputs = self._run_alone(joined, total)
        if any(np.shape(value)[:1] != (total,) for value in outputs.values()):
            self._joins = False
            return None
        ends = np.cumsum(batch.rows)
        bounds = zip(ends - batch.rows, ends, strict=True)
        return [{name: one[start:end] for name, one in outputs.items()} for start, end in bounds]

    def _run_alone(self, inputs: Tensors, rows: int) -> dict[str, Any]:
        self._observe(rows)
        return self._signature(**inputs)


def _rows(inputs: Tensors) -> int | None:
    """The first size that all inputs have; None where they have none in common."""
    sizes = {np.shape(one)[:1] for one in inputs.values()}
    return sizes.pop()[0] if len(sizes) == 1 and () not in sizes else None


def _has_open_first_sizes(signature: Signature) -> bool:
    """Whether calls can be joined: the first sizes of all inputs and outputs are not fixed."""
    specs = [*signature.inputs.values(), *signature.outputs.values()]
    return bool(signature.inputs) and all(
        isinstance(spec, TensorSpec)
        and (spec.shape.rank is None or (spec.shape.rank > 0 and spec.shape.as_list()[0] is None))
        for spec in specs
    )


def _seconds_left() -> float | None:
    budget = current_budget()
    return None if budget is None else budget.seconds_left
