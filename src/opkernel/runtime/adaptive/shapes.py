"""The strategies for fed shapes that repeat: ShapeSpecializer gives them a plan of their own, EngineTrial an engine.

A graph that asks for the shapes of its feeds computes the same sizes at every step. Once feeds have had the same
shapes a few times, the graph is optimised again for these shapes. Shapes are constants then, and all nodes that
depend on shapes alone are gone, with broadcasts that do nothing and reshapes to the same shape. The kernels are those
of the general plan, with their state. Results are those of the general plan to the last bit: what this optimises is
the general plan's graph, by the passes that round nothing otherwise. `ShapedFunctions` does the same for the
functions that the graph calls.

An EngineTrial finds the engine that computes a program fastest, or whether the one that was named does. The first steps
run by the plan. Meanwhile another thread builds the program with clusters for each engine, for the shapes that were fed,
and compiles them. Then the plan and the engines take turns of some steps; the fastest runs all further steps with these
shapes. Results of a program are compared with the plan's where it is first used (`XlaLaunchOp`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import FunctionLibraryDefinition, Operation
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.graph.inference.whole_graph_refiner import WholeGraphRefiner
from opkernel.logs import logger
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.records import replace
from opkernel.runtime.adaptive.adaptive import (
    DOUBLING,
    ENGINES,
    PLAN,
    Adaptive,
    Candidate,
    Patience,
    Search,
    take_turns,
)
from opkernel.runtime.plan.functional_ops import FunctionLibrary, LibraryFunction
from opkernel.runtime.program.executors import Executor
from opkernel.runtime.program.request import Jit, ProgramRequest, Subgraph, read_shapes
from opkernel.types import TensorShape

if TYPE_CHECKING:
    from opkernel.graph.edit.jit_options import JitOptions
    from opkernel.kernel import Step
    from opkernel.runtime.program.builder import Shapes, StepProgram


FedShapes = tuple[tuple[int, ...], ...]
"""The shapes that feeds had in a step."""

Build = Callable[[ProgramRequest], "StepProgram"]

_shape = attrgetter("shape")


def shapes_of(values: Sequence[Any]) -> FedShapes:
    """The shapes of what is fed."""
    return tuple(map(_shape, values))


def fed(key: FedShapes) -> str:
    """Which steps are fed some shapes, in words."""
    return f"fed {', '.join(map(str, map(list, key)))}"


def facts_of(shapes: FedShapes) -> list[TensorFacts]:
    """What is known of feeds that have these shapes."""
    return [TensorFacts(ShapeAlgebra.make_shape(shape)) for shape in shapes]


class ShapeSpecializer(Adaptive):
    """Makes plans for the shapes that come often.

    Args:
        general: The program for all shapes.
        build: Builds programs.
    """

    name = "shapes"

    def __init__(self, general: StepProgram, build: Build) -> None:
        run, request = general.executor.run, general.request
        super().__init__(run, request.part.names, request.findings, Patience(DOUBLING))
        self._program, self._build = general, build

    key_of = staticmethod(shapes_of)
    describe = staticmethod(fed)

    def search(self, shapes: FedShapes) -> Search:
        """Make the plan for some shapes."""
        special = self._specialized(shapes) if self._program.request.is_current() else None
        run = special.executor.run if special else self.general
        made = Candidate("plan for the shapes", run, program=special)
        yield made
        return made

    def executor_for(self, shapes: Shapes) -> Executor:
        """The executor for feeds of these shapes when they repeat; else the general one.

        Raises:
            InvalidArgumentError: these are no shapes, not those that the feeds may have, or not as
                many as there are feeds.
        """
        feeds, known = self._program.part.feeds, [TensorShape(shape) for shape in shapes]
        if len(known) != len(feeds):
            raise InvalidArgumentError(f"Expected {len(feeds)} shapes of feeds, got {len(known)}")
        for tensor, shape in zip(feeds, known, strict=True):
            tensor.shape.merge_with(shape)
        return (self._specialized(tuple(known)) or self._program).executor

    def _specialized(self, shapes: FedShapes) -> StepProgram | None:
        """The program for feeds of these shapes; None where nothing is gained, or state would start anew."""
        general = self._program
        if general.request.jit_options() is not None and _has_acting_loops(general.request.part):
            return None
        special = self._build(
            replace(
                general.request, part=general.part, feed_facts=facts_of(shapes), keeps_bits=True
            )
        )
        if not _has_shaped_calls(special) and _work(special) >= _work(general):
            return None
        if special.executor.uses_step and not general.executor.uses_step:
            return None
        return special


def _has_acting_loops(part: Subgraph) -> bool:
    """Whether clustering makes functions, other ones for each program, of what may have kernels with state."""
    operations = part.operations
    has_flow = any(op.type in LOW_LEVEL_CONTROL_FLOW for op in operations)
    return has_flow and any(effect_of(op.signature) is Effect.ACTS for op in operations)


def _work(program: StepProgram) -> int:
    """How many operations are more than constants."""
    return sum(op.type != "Const" for op in program.part.operations)


def _has_shaped_calls(program: StepProgram) -> bool:
    """Whether functions that it calls are compiled for the known facts of their arguments."""
    libraries = [args.library for args in program.args]
    return any(isinstance(one, ShapedFunctions) and one.has_any for one in libraries)


class ShapedFunctions:
    """Gives functions compiled for what the graph of the call knows of the arguments.

    Attributes:
        has_any: whether any function was.
    """

    def __init__(self, library: FunctionLibrary, needed: Sequence[Operation]) -> None:
        """The functions of `library` for calls among the operations of a graph that are `needed`."""
        self.has_any = False
        self._library = library
        self._needed = frozenset(needed)

    def functions(self, op: Operation, attr: str) -> Sequence[LibraryFunction]:
        """The functions of an attr of type `func` or `list(func)`."""
        return [self._shaped(function, op) for function in self._library.functions(op, attr)]

    def function_of(self, op: Operation) -> LibraryFunction | None:
        """The function that a node calls by having its name as op; None for all other nodes."""
        function = self._library.function_of(op)
        return None if function is None else self._shaped(function, op)

    def add_functions(self, library: FunctionLibraryDefinition) -> None:
        """Know the functions, too, that a pass has added to a copy of the library."""
        self._library.add_functions(library)

    def _shaped(self, function: LibraryFunction, op: Operation) -> LibraryFunction:
        nodes = function.definition.node_def
        if not read_shapes(op.graph.function_library, nodes) or self._refiner is None:
            return function
        shaped = function.for_arguments(self._refiner.facts_of_arguments(op))
        self.has_any |= shaped is not function
        return shaped

    @cached_property
    def _refiner(self) -> WholeGraphRefiner | None:
        """Knows the shapes of the graph; None where it is wrong, as the step will say."""
        graph = next(iter(self._needed)).graph
        try:
            return WholeGraphRefiner.settle(graph, self._needed)
        except OpError:
            return None


_TURNS = 2
_TIMED = 3
"""So many steps a candidate is timed at a turn, after one that takes what variables hold from another's memory."""
_PATIENCE = (1, 3, 3, 3)
"""The shapes of the first step get programs of their own at once, and those of three others that come so often."""
_NAMED_MAY_TAKE = 1.1
"""An engine that was asked for by name stays unless its steps take so much longer than the plan's."""
_SHORTEST_S = 50e-6
"""Steps that take less time gain nothing."""


class EngineTrial(Adaptive):
    """Tries what engines make of a program.

    Where one engine is the fastest for all shapes that were tried, it compiles the steps with other shapes, too.

    Args:
        program: The program without engines.
        build: Builds programs.
    """

    name = ENGINES

    def __init__(self, program: StepProgram, build: Build) -> None:
        request = program.request
        self._program, self._build, self._run_others = program, build, program.run
        self._is_named, self._winners = request.jit.options is not None, set[str]()
        self.jit = request.jit.name
        patience = Patience(_PATIENCE[:1] if self._is_named else _PATIENCE)
        super().__init__(self._run_other, request.part.names, request.findings, patience)

    def _run_other(self, step: Step, *values: Any) -> Sequence[Any]:
        """Run a step with shapes that were not tried."""
        return self._run_others(step, *values)

    key_of = staticmethod(shapes_of)
    describe = staticmethod(fed)

    def program_of_shapes(self, shapes: Shapes | None) -> StepProgram | None:
        """The program of the engine that was chosen for feeds of some shapes, or that was chosen last."""
        if shapes is not None:
            return self._programs.get(tuple(map(tuple, shapes)))
        return next(reversed(self._programs.values()), None)

    def program_for(self, values: Sequence[Any]) -> StepProgram | None:
        """The program of the engine that was chosen; otherwise what runs steps without engines."""
        return super().program_for(values) or self._program.running(values)

    def search(self, shapes: FedShapes) -> Search:
        """Try all engines for feeds of some shapes."""
        plan, others = Candidate(PLAN, self._program.run), list[Candidate]()
        yield plan
        from opkernel.runtime.engines.late_work import in_background  # where engines are tried

        prepared = in_background(
            partial(_prepare, weakref.ref(self), self._program.request.jit, shapes, others)
        )
        while not prepared.done():
            yield plan
        yield from take_turns(others, timed=0, untimed=1)  # has their clusters compiled
        while any(launch.is_compiling for one in others for launch in one.launches):
            yield plan
        slack = _NAMED_MAY_TAKE if self._is_named else 1.0
        best = (yield from _fastest([plan, *others], slack)) if others else plan
        for one in others:
            if one is not best:
                for launch in one.launches:
                    launch.let_go()
        self._winners.add(best.name)
        if self.patience.is_over and self._winners == {best.name} != {PLAN}:
            in_background(partial(_prepare_for_others, weakref.ref(self), best.name))
        return best

    def candidate(self, options: JitOptions, shapes: FedShapes) -> Candidate | None:
        """The program with clusters for an engine; None where there are none."""
        request = self._program.request
        if not request.is_current():
            return None
        special = self._build(replace(request, jit=Jit(options), feed_facts=facts_of(shapes)))
        nodes = [(args.kernels, op) for args in special.args for op in args.order]
        launches = [kernels.kernel(op) for kernels, op in nodes if op.type == "XlaLaunch"]
        name = options.compiler.name
        return Candidate(name, special.run, launches, special) if launches else None

    def take_others(self, engine: str) -> None:
        """Have an engine compile the steps with shapes that were not tried."""
        request = self._program.request
        (options,) = [one for one in request.jit.candidates() if one.compiler.name == engine]
        self._run_others = self._build(replace(request, jit=Jit(options))).run


def _prepare_for_others(trial: weakref.ref[EngineTrial], engine: str) -> None:
    """Build the program of an engine for all shapes, if there is somebody to run it."""
    there = trial()
    if there is not None:
        with suppress(OpError):  # the plan goes on
            there.take_others(engine)


def _prepare(
    trial: weakref.ref[EngineTrial], jit: Jit, shapes: FedShapes, found: list[Candidate]
) -> None:
    """Build the program for each engine, as long as there is somebody to run it."""
    for options in jit.candidates():
        there = trial()
        if there is None:
            return
        try:
            candidate = there.candidate(options, shapes)
        except OpError as error:
            logger("opkernel.engines").info(
                "%s has no program for the shapes %s: %s", options.compiler.name, shapes, error
            )
            continue
        if candidate is not None:
            found.append(candidate)
        del there


def _fastest(candidates: Sequence[Candidate], slack: float) -> Search:
    """The fastest of the plan, which comes first, and the others; the plan where its steps are short.

    The plan has to be faster than any other by a factor, `slack`.
    """
    plan = candidates[0]
    for _ in range(_TURNS):
        yield from take_turns(candidates, timed=_TIMED, untimed=1)
        if min(plan.times) < _SHORTEST_S:
            return plan
    return min(candidates, key=lambda one: (one.seconds or 0.0) * (slack if one is plan else 1.0))
