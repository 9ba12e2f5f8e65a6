"""The steps of `opkernel run`: timed or traced, and what `--jit` found out meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.cli.results import Result
from opkernel.cli.signature import Element, graph_inputs, needed_operations
from opkernel.device.budget import current_budget
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Tensor
from opkernel.graph.core.structural_ops import ARG_OPS
from opkernel.proto import RunMetadata, StepStats
from opkernel.records import dataclass
from opkernel.runtime import RunOptions, Session
from opkernel.types import Array, DataType, object_scalar

if TYPE_CHECKING:
    from opkernel.runtime.adaptive.adaptive import Finding


@dataclass(frozen=True)
class EngineTrialFacts:
    """What a session found out about engines; printed it is a line.

    Attributes:
        jit: What was asked for: `auto`, or an engine.
        finding: The finding of the session; None where the trial has not come to its end.
        why_not: Why it has not.
    """

    jit: str
    finding: Finding | None
    why_not: str = ""

    def __str__(self) -> str:
        if self.finding is None:
            return f"{self.jit}: {self.why_not}"
        return self.finding.what_engines_took

    def as_json(self) -> dict[str, Any]:
        """What was tried, with milliseconds, and what was chosen; why there is nothing to choose from."""
        finding = self.finding
        if finding is None:
            return {"jit": self.jit, "chosen": None, "error": self.why_not}
        tried = {name: took and took * 1e3 for name, took in finding.tried.items()}
        found = {"jit": self.jit, "chosen": finding.chosen, "since_step": finding.since}
        found["tried_ms"] = tried
        return {**found, "error": finding.error} if finding.error else found


def _trial_facts(session: Session, has_waited: bool, is_traced: bool) -> EngineTrialFacts:
    """What a session found out about engines.

    Args:
        session: The session, which tries engines.
        has_waited: Whether steps were run until the trial would end.
        is_traced: Whether the steps were traced.
    """
    found = [one for one in session.report() if one.strategy == "engines"]
    if found:
        return EngineTrialFacts(session.jit, found[-1])
    if current_budget() is not None:
        why_not = "steps with a limit of time or memory try no engines"
    elif has_waited:
        why_not = "engines are still being compiled or tried"
    elif is_traced:
        why_not = "traced steps try no engines"
    else:
        why_not = "engines are being tried; --repeat with more steps lets the trial end"
    return EngineTrialFacts(session.jit, None, why_not)


@dataclass(frozen=True)
class RunSteps:
    """The steps of a run.

    Attributes:
        results: The results of the last step.
        seconds: The time of each step.
        step_stats: The statistics of each step, where they were traced.
        is_repeated: Whether the user said how many steps there are.
        trial: What was found out about engines, where these were tried.
    """

    results: list[Result]
    seconds: list[float]
    step_stats: list[StepStats]
    is_repeated: bool
    trial: EngineTrialFacts | None = None

    @property
    def traced(self) -> list[StepStats]:
        """The statistics for a trace: of all steps, or of the one that a profile shows."""
        if self.is_repeated:
            return self.step_stats
        from opkernel.cli.profile import StepProfile

        return [self.step_stats[StepProfile(self.step_stats).number]]


def compiled_now() -> str:
    """What engines compile at the moment, where one was asked for."""
    compiling = sys.modules.get("opkernel.runtime.engines.compiling")
    found = compiling.compiled_now() if compiling is not None else ()
    return f", compiling {', '.join(found)}" if found else ""


_TRACED_STEPS = 5
"""So many steps a profile or trace takes where the user does not say how many."""


def run_steps(
    session: Session,
    feeds: dict[Tensor, Any],
    asked: Mapping[str, Element],
    repeat: int | None,
    is_traced: bool,
) -> RunSteps:
    """Compute these tensors; operations without outputs are run and give none.

    The first traced step compiles. Before the others, the session finds out how it runs such steps, if these
    change nothing.
    """
    fetches = [*asked.values()]
    _check_arguments_fed(session.graph, fetches, feeds)
    seconds, step_stats = list[float](), list[StepStats]()
    if is_traced:
        values = _run_traced(session, fetches, feeds, repeat, step_stats)
    else:
        for _ in range(repeat or 1):
            start = perf_counter()
            values = session.run(fetches, feeds)
            seconds.append(perf_counter() - start)
    trial = None
    if (is_traced or repeat is not None) and session.tries_engines:
        trial = _trial_facts(session, session.warm_up(fetches, feeds) is not None, is_traced)
    results = [
        Result(name, fetch.dtype.base, _array(value, fetch.dtype.base))
        for (name, fetch), value in zip(asked.items(), values, strict=True)
        if isinstance(fetch, Tensor)
    ]
    if is_traced:
        from opkernel.runtime.traces import profile_of  # of use to few runs

        seconds = profile_of(step_stats).steps  # the record is written after the last node
    return RunSteps(results, seconds, step_stats, repeat is not None, trial)


def _run_traced(
    session: Session,
    fetches: Sequence[Element],
    feeds: Mapping[Tensor, Any],
    repeat: int | None,
    step_stats: list[StepStats],
) -> Sequence[Any]:
    """Run traced steps, and add their statistics; the values of the last."""
    values = _traced_step(session, fetches, feeds, step_stats)
    left = (repeat or 1) - 1
    if session.warm_up(fetches, feeds) is not None:  # steps change nothing
        _traced_step(session, fetches, feeds, [])  # has engines prepare to measure
        left = left if repeat else _TRACED_STEPS
    for _ in range(left):
        values = _traced_step(session, fetches, feeds, step_stats)
    return values


def _traced_step(
    session: Session,
    fetches: Sequence[Element],
    feeds: Mapping[Tensor, Any],
    step_stats: list[StepStats],
) -> Sequence[Any]:
    """Run a step, and add its statistics."""
    metadata = RunMetadata()
    options = RunOptions(trace_level=RunOptions.FULL_TRACE)
    values: Sequence[Any] = session.run(fetches, feeds, options, metadata)
    step_stats.append(metadata.step_stats)
    return values


def _check_arguments_fed(
    graph: Graph, fetches: Sequence[Element], feeds: Mapping[Tensor, Any]
) -> None:
    """Raise InvalidArgumentError where an argument of a function's body is needed and not fed."""
    missing = [t for t in graph_inputs(graph) if t.op.type in ARG_OPS and t not in feeds]
    if not missing:
        return
    needed = needed_operations(fetches, [*feeds])
    for tensor in missing:
        op = tensor.op
        if op in needed:
            raise InvalidArgumentError(
                f"You must feed a value for argument {op.attr['index'].i} of the function, "
                f"{op.name!r} with dtype {tensor.dtype.string}: --input {op.name}=VALUE, or --random",
                node=op.name,
                op=op.type,
            )


def _array(value: Any, dtype: DataType) -> Array:
    """A value as an array; a string or handle by itself becomes one of rank 0."""
    if isinstance(value, np.ndarray) or dtype.numpy_dtype.kind != "O":
        return np.asarray(value)
    return object_scalar(value)
