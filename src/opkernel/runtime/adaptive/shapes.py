"""ShapeSpecializer: the strategy for fed shapes that repeat, which get a plan of their own.

A graph that asks for the shapes of its feeds computes the same sizes at every step. Once feeds have had
the same shapes a few times, the graph is optimised again for these shapes. Shapes are constants then, and
all nodes that depend on shapes alone are gone, with broadcasts that do nothing and reshapes to the same
shape. The kernels are those of the general plan, with their state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.records import replace
from opkernel.runtime.adaptive.adaptive import DOUBLING, Adaptive, Candidate, Patience, Search
from opkernel.runtime.program.executors import Executor
from opkernel.runtime.program.request import ProgramRequest
from opkernel.runtime.program.shaped_functions import ShapedFunctions
from opkernel.types import TensorShape

if TYPE_CHECKING:
    from opkernel.runtime.program.builder import Program, Shapes

FedShapes = tuple[tuple[int, ...], ...]
"""The shapes that feeds had in a step."""

Build = Callable[[ProgramRequest], "Program"]

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

    def __init__(self, general: Program, build: Build) -> None:
        run, request = general.executor.run, general.request
        super().__init__(run, request.part.names, request.findings, Patience(DOUBLING))
        self._program, self._build = general, build

    key_of = staticmethod(shapes_of)
    describe = staticmethod(fed)

    def search(self, shapes: FedShapes) -> Search:
        """Make the plan for some shapes."""
        executor = self._specialized(shapes) if self._program.request.is_current() else None
        made = Candidate("plan for the shapes", executor.run if executor else self.general)
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
        return self._specialized(tuple(known)) or self._program.executor

    def _specialized(self, shapes: FedShapes) -> Executor | None:
        """The plan for feeds of these shapes; None where nothing is gained."""
        general = self._program
        special = self._build(
            replace(general.request, part=general.part, feed_facts=facts_of(shapes))
        )
        if not _has_shaped_calls(special) and _work(special) >= _work(general):
            return None
        if special.executor.uses_step and not general.executor.uses_step:
            return None
        return special.executor


def _work(program: Program) -> int:
    """How many operations are more than constants."""
    return sum(op.type != "Const" for op in program.part.operations)


def _has_shaped_calls(program: Program) -> bool:
    """Whether functions that it calls are compiled for the known facts of their arguments."""
    libraries = [args.library for args in program.args]
    return any(isinstance(one, ShapedFunctions) and one.has_any for one in libraries)
