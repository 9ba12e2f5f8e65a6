"""One graph, run in all ways that give the same."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from tools.campaigns.campaign import Finding

import opkernel
from opkernel.errors import Code, OpError
from opkernel.graph import Graph, Operation

__all__ = ["Outcome", "check_alike", "ends_of", "feeds_of", "outcome_of"]

_WAYS: dict[str, dict[str, Any]] = {
    "plan": {},
    "without passes": {"optimize": False},
    "dataflow": {"optimize": False, "executor_type": "DATAFLOW"},
}
_DRAWS = 30
_BY_LIMITS = {Code.DEADLINE_EXCEEDED, Code.RESOURCE_EXHAUSTED}


class Outcome(NamedTuple):
    """What a way of running gave.

    Attributes:
        values: The results, None where there was an error.
        error: The error, None where there was none.
    """

    values: tuple[Any, ...] | None
    error: OpError | None

    @property
    def word(self) -> str:
        """How it ended: `ran`, or the status code."""
        return "ran" if self.error is None else self.error.code.name


def outcome_of(run: Callable[[], Any]) -> Outcome:
    """The results, flat, or the error with which a way refused."""
    try:
        result = run()
    except OpError as error:
        return Outcome(None, error)
    return Outcome(tuple(result) if isinstance(result, list | tuple) else (result,), None)


def ends_of(graph: Graph) -> list[Operation]:
    """What no other operation takes anything of."""
    return [op for op in graph.get_operations() if not any(t.consumers() for t in op.outputs)]


def feeds_of(graph: Graph) -> dict[Any, Any]:
    """A value for each placeholder."""
    tensors = [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]
    return {tensor: _value(tensor) for tensor in tensors}


def _value(tensor: opkernel.Tensor) -> Any:
    sizes = tensor.shape.as_list() if tensor.shape.rank is not None else []
    return np.zeros([2 if size is None else min(size, 64) for size in sizes])


def check_alike(graph: Graph, fetches: Sequence[Any], feeds: Mapping[Any, Any]) -> str:
    """Run a graph in all ways; raise Finding where they differ. Gives how the first one ended."""
    outcomes = {way: _run(graph, fetches, feeds, options) for way, options in _WAYS.items()}
    expected = outcomes["without passes"]
    for way, outcome in outcomes.items():
        what = _differ(expected, outcome)
        if what and not _is_random(graph, fetches, feeds, expected):
            raise Finding(f"without passes and by {way}: {what}")
    return outcomes["plan"].word


def _is_random(
    graph: Graph, fetches: Sequence[Any], feeds: Mapping[Any, Any], once: Outcome
) -> bool:
    """Whether some further run gives something else; a few random integers are often the same twice."""
    return any(
        _differ(once, _run(graph, fetches, feeds, _WAYS["without passes"])) for _ in range(_DRAWS)
    )


def _run(
    graph: Graph, fetches: Sequence[Any], feeds: Mapping[Any, Any], options: Mapping[str, Any]
) -> Outcome:
    timeout = opkernel.RunOptions(timeout_in_ms=2000)

    def run() -> Any:
        with opkernel.Session(graph, memory_limit_bytes=1 << 24, **options) as session:
            return session.run(list(fetches), dict(feeds), timeout)

    return outcome_of(run)


def _differ(one: Outcome, other: Outcome) -> str:
    """In what two outcomes differ: in success, or in a value beyond rounding."""
    if {o.error.code for o in (one, other) if o.error} & _BY_LIMITS:
        return ""
    if (one.error is None) != (other.error is None):
        return f"{one.error or 'ran'} | {other.error or 'ran'}"
    if one.values is None or other.values is None:
        return ""
    for index, (a, b) in enumerate(zip(one.values, other.values, strict=True)):
        if not same(a, b):
            return f"output {index}: {a!r} | {b!r}"
    return ""


def same(a: Any, b: Any) -> bool:
    """Whether two results are of one type and shape, and equal but for rounding."""
    one, two = np.asarray(a), np.asarray(b)
    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    if one.dtype == object:
        texts = [v for v in zip(one.flat, two.flat, strict=True) if isinstance(v[0], bytes)]
        return all(x == y for x, y in texts)
    if one.dtype.kind in "fc" or one.dtype.kind == "V":
        wide = np.complex128 if one.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            return bool(
                np.allclose(
                    one.astype(wide), two.astype(wide), rtol=1e-2, atol=1e-3, equal_nan=True
                )
            )
    return bool(np.array_equal(one, two))
