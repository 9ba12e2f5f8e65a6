"""InstantiatedFunction: a function with its attrs, ready to be called; the handle of a library.

Plans call it as `function(step, *arguments)` with nothing between them and the function's own plan.

State: a call runs `_run`. At first `_run` compiles the body, then it is the plan, and after the release of
the handle it refuses. `_error` makes the error for calls that do not fit. `_made` holds the body with its
kernels, which `renewed` shares, and the `_variants` for arguments with known `_facts`.
"""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from opkernel.errors import NotFoundError, OpError
from opkernel.graph import (
    FunctionBody,
    FunctionLibraryDefinition,
    Operation,
    instantiate_function,
)
from opkernel.graph.functions.call_types import declared_types
from opkernel.graph.functions.function_library import GRADIENT_OP
from opkernel.graph.inference.tensor_facts import FactsKey, TensorFacts, key_of_facts
from opkernel.kernel import FunctionRunOptions, Step
from opkernel.proto import FunctionDef, NameAttrList
from opkernel.records import replace
from opkernel.runtime.calls.function_step import FunctionStep
from opkernel.runtime.program.builder import build_program
from opkernel.runtime.program.executors import Executor
from opkernel.runtime.program.kernels import KernelCache
from opkernel.runtime.program.request import ProgramRequest
from opkernel.runtime.program.subgraph import Subgraph
from opkernel.runtime.step.call_step import CallStep, CallSteps

if TYPE_CHECKING:
    from opkernel.kernel import GraphCollector
    from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime

__all__ = ["InstantiatedFunction"]

_numbers = itertools.count()
_NO_OPTIONS = FunctionRunOptions()
_MAX_VARIANTS = 8
"""A function that calls itself on ever larger arguments has no more plans of its own for them."""


class InstantiatedFunction:
    """A function with its attrs on a device.

    Body and plan are made when they are first needed, so that functions may call each other, or
    themselves. Functions with equal kernels share their state.

    Attributes:
        name: The name of the FunctionDef.
        number: A number that no other handle of the process has.
        runtime: Gives the functions that it calls.
        key: The arguments that it was instantiated with.
        definition: The function, as it is in the library.
        types: Its declared input and output types; None where it cannot be instantiated.
        references: How many calls of `instantiate` have not been undone.
        call_steps: Gives calls of the plan a step that knows the call; None where no kernel may ask.
        is_pruned: Whether what neither a result nor a control output needs does not run.
    """

    def __init__(
        self,
        runtime: FunctionLibraryRuntime,
        key: Hashable,
        definition: FunctionDef,
        reference: NameAttrList,
        executor_type: str = "",
        *,
        is_pruned: bool = False,
    ) -> None:
        self.name = reference.name
        self.number = next(_numbers)
        self.runtime = runtime
        self.key = key
        self.definition = definition
        self.types = declared_types(definition.signature, reference.attr)
        self.references = 0
        self._is_released = False
        self._error: OpError | None = None
        self._reference = reference
        self._executor_type = executor_type
        self.is_pruned = is_pruned
        self._made: list[tuple[FunctionBody, KernelCache]] = []  # one, once it is made
        self._facts: Sequence[TensorFacts] = ()
        self._variants: dict[FactsKey, InstantiatedFunction] = {}
        self._plan: Executor | None = None
        self.call_steps: CallSteps | None = None
        self._frame_plan: Executor | None = None
        self._run: Callable[..., Sequence[Any]] = self._compile_and_run
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<function {self.name!r}, handle {self.number}>"

    def __call__(self, step: Step, *arguments: Any) -> Sequence[Any]:
        """Run the function; the results are its outputs, flat."""
        if self.call_steps is not None:
            step = CallStep(step, self.call_steps, arguments)
        return self._run(step, *arguments)

    def run_with_frame(self, step: Step) -> None:
        """Run the function; arguments come from, and results go to, the step's call frame."""
        with self._lock:
            plan = self._frame_plan
            if plan is None:
                targets = [*self.body.ret_nodes, *self.targets]
                plan = self._frame_plan = self._new_executor(Subgraph([], [], targets))
        plan.run(step)

    @property
    def body(self) -> FunctionBody:
        """The function as a graph.

        Raises:
            NotFoundError: an attr is missing, or an op is not registered.
            InvalidArgumentError: a node of the function breaks a rule.
        OpError: the error given to `refusing`.
        """
        return self._body_and_kernels()[0]

    @property
    def targets(self) -> tuple[Operation, ...]:
        """The operations of the body that always run; raises as `body` does."""
        return self.body.control_ret_nodes if self.is_pruned else self.body.targets

    @property
    def plan(self) -> Executor:
        """The executor of the body; raises as `body` and `new_executor` do."""
        with self._lock:  # two plans would have two kernels for one stateful node
            if self._plan is None:
                body = self.body
                part = Subgraph(body.inputs, body.outputs, self.targets)
                self._plan = self._new_executor(part)
                self.call_steps = self._new_call_steps()
            return self._plan

    def check_alive(self) -> None:
        """Raise NotFoundError where the handle was released."""
        if self._is_released:
            self._refuse()

    def release(self) -> None:
        """Let go of body, kernels and their state; calls are refused from now on."""
        with self._lock:
            self._is_released = True
            self._plan = self._frame_plan = None
            self._made.clear()
            self._run = self._refuse

    def renewed(self) -> InstantiatedFunction:
        """The same handle with plans that are still to be made, of the kernels as they are now."""
        other = copy.copy(self)
        other._plan = other._frame_plan = None
        other._variants = {}
        other._run = other._compile_and_run
        return other

    def refusing(self, error: OpError) -> InstantiatedFunction:
        """The same handle for a call that does not fit: body, plan and calls raise the error."""
        other = self.renewed()
        other._error = error
        return other

    def for_arguments(self, facts: Sequence[TensorFacts]) -> InstantiatedFunction:
        """The function with a plan for arguments with these known facts, and the same kernels.

        It is the function itself where nothing is known, or there are enough such plans.
        """
        if all(one.are_empty for one in facts):
            return self
        key, _ = key_of_facts(facts)
        variant = self._variants.get(key)
        if variant is None and len(self._variants) < _MAX_VARIANTS:
            made = self.renewed()
            made._facts = facts
            variant = self._variants.setdefault(key, made)
        return variant or self

    def _compile_and_run(self, step: Step, *arguments: Any) -> Sequence[Any]:
        with self._lock:
            self.check_alive()
            run = self.plan.run
            self._run = self._within_runtime(run) if self.runtime.is_variant else run
        return self(step, *arguments)

    def _within_runtime(self, run: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
        """Has kernels find the functions of this runtime, which are not those of the step."""
        runtime = self.runtime

        def run_within(step: Step, *arguments: Any) -> Sequence[Any]:
            if step.function_library is not runtime:
                step = FunctionStep(step, _NO_OPTIONS, **runtime.services)
            return run(step, *arguments)

        return run_within

    def _refuse(self, *_: Any) -> Sequence[Any]:
        raise NotFoundError(f"Handle {self.number} not found: it was released ({self.name})")

    def _body_and_kernels(self) -> tuple[FunctionBody, KernelCache]:
        if self._error is not None:
            raise copy.copy(self._error)
        with self._lock:
            if not self._made:
                self.check_alive()
                runtime = self.runtime
                body = self._new_body(runtime.known_functions())
                self._made.append((body, runtime.kernels_of(body.graph)))
            return self._made[0]

    def _new_body(self, library: FunctionLibraryDefinition) -> FunctionBody:
        if self.name == GRADIENT_OP:
            from opkernel.gradients import symbolic_gradient_body  # seldom needed

            return symbolic_gradient_body(library, self._reference)
        return instantiate_function(library, self.definition, self._reference.attr)

    def _new_call_steps(self) -> CallSteps | None:
        body, kernels = self._body_and_kernels()
        if not kernels.asks_for_call:
            return None
        executor_type = self._executor_type or self.runtime.executor_type
        return CallSteps(body.arg_types, body.ret_types, executor_type)

    def collect_graphs(self, collector: GraphCollector) -> None:
        """Have a collector take the graphs that are made of it; raises as `plan` does."""
        from opkernel.runtime.placement.partition_graphs import collect_graphs  # seldom asked for

        body = self.body
        part = Subgraph(body.inputs, body.outputs, self.targets)
        if body.outputs or self.targets:
            collect_graphs(body.graph, self._request(part), collector)

    def _new_executor(self, part: Subgraph) -> Executor:
        return build_program(self._request(part)).executor

    def _request(self, part: Subgraph) -> ProgramRequest:
        runtime, facts = self.runtime, self._facts
        if len(facts) != len(part.feeds):
            facts = [TensorFacts() for _ in part.feeds]
        kernels = self._body_and_kernels()[1]
        request = runtime.request(part, kernels, facts, lowers=self.is_pruned)
        if self._executor_type:
            request = replace(request, executor_type=self._executor_type)
        return request
