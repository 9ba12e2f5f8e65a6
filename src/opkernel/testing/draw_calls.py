"""Draws calls of an op that its shape function accepts, from the OpDef alone.

Shapes are found one size at a time: the shape function is told the sizes drawn so far, with all else
unknown, and a size that it refuses is replaced by one that it accepts. So inputs whose sizes must
go together are found without knowing why. The values of inputs that it looks at are found likewise.
A few shape functions refuse unknown sizes; for them all is drawn at once.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from opkernel.errors import OpError
from opkernel.opdef import OpRegistrationData, validate_node_def
from opkernel.proto import KernelDef, NodeDef, OpDef
from opkernel.testing.draw_values import Draw, draw_attrs, draw_indices, draw_tensor
from opkernel.testing.op_call import OpCall, shapes_of_outputs
from opkernel.testing.op_runs import node_of
from opkernel.types import Array, DataType

_MAX_RANK = 5
_MAX_ELEMENTS = 300
_TRIES = 4
_SIZES = [2, 1, 3, 0, 4]
_RANKS = [0, 1, 2, 1, 3, 4, 2]

Shape = tuple[int | None, ...] | None


@dataclass(frozen=True, repr=False)
class CallSource:
    """The source of drawn calls.

    Attributes:
        registration: The op.
        kernel_defs: The kernels that the calls are for.
        inputs: Strategies, or values, for input arguments whose values follow a rule of their own.
        attrs: Strategies, or values, for attrs.
        refusals: The last error with which the shape function refused something.
    """

    registration: OpRegistrationData
    kernel_defs: Sequence[KernelDef]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    refusals: deque[OpError] = field(default_factory=lambda: deque(maxlen=1))

    def __repr__(self) -> str:
        return self.registration.op_def.name

    def accepts(self, node: NodeDef, shapes: Sequence[Shape], values: Sequence[Any] = ()) -> bool:
        """Whether the shape function accepts such inputs of a node."""
        try:
            shapes_of_outputs(self.registration, node, shapes, values)
        except OpError as error:
            self.refusals.append(error)
            return False
        except Exception:  # a complete call will raise it again
            return True
        return True


@st.composite
def op_calls(draw: Draw, source: CallSource) -> OpCall:
    """Calls that the shape function accepts."""
    node, dtypes = _draw_node(draw, source)
    args = list(_args_of_inputs(source.registration.op_def, node))
    given = {
        index: _given(draw, source.inputs[arg.name], dtypes[index], number)
        for index, (arg, number) in enumerate(args)
        if arg.name in source.inputs
    }
    search = _Search(draw, source, node, given)
    is_index = _are_indices(source.registration.op_def, [arg for arg, _ in args], dtypes)
    shapes = search.shapes(is_index, [bool(arg.type) for arg, _ in args])
    values = search.values(shapes, dtypes, is_index)
    return OpCall(source.registration, node, tuple(values))


def _draw_node(draw: Draw, source: CallSource) -> tuple[NodeDef, list[DataType]]:
    """A node, and the types of its inputs."""
    op_def = source.registration.op_def
    which = draw(st.integers(0, len(source.kernel_defs) - 1))
    for attempt in range(_TRIES):
        attrs = draw_attrs(draw, op_def, source.kernel_defs[which], source.attrs)
        try:
            node = node_of(op_def, attrs)
            dtypes, _ = validate_node_def(node, op_def)
        except OpError:
            continue
        if attempt == _TRIES - 1 or source.accepts(node, [None] * len(dtypes)):
            return node, dtypes
    return reject()


def _given(draw: Draw, value: Any, dtype: DataType, number: int | None) -> Any:
    """An input that the author gives: a value or a strategy; of a list, one for all or for each."""
    if isinstance(value, list | tuple) and number is not None:
        value = value[number]
    value = draw(value) if isinstance(value, st.SearchStrategy) else value
    return value if isinstance(value, np.ndarray) else np.asarray(value, dtype.base.numpy_dtype)


def _args_of_inputs(op_def: OpDef, node: NodeDef) -> Iterator[tuple[OpDef.ArgDef, int | None]]:
    """The argument that each input belongs to, and its place in that where it is a list."""
    for arg in op_def.input_arg:
        if arg.number_attr:
            yield from ((arg, number) for number in range(node.attr[arg.number_attr].i))
        elif arg.type_list_attr:
            types = node.attr[arg.type_list_attr].list.type
            yield from ((arg, number) for number in range(len(types)))
        else:
            yield arg, None


def _are_indices(
    op_def: OpDef, args: Sequence[OpDef.ArgDef], dtypes: Sequence[DataType]
) -> list[bool]:
    """Which inputs are likely to be sizes, axes or indices rather than data.

    They are integers for all values of the attrs. Where all inputs are of one type, as for
    BitwiseAnd, none is.
    """
    declared = {attr.name: attr.allowed_values.list.type for attr in op_def.attr}

    def only_integers(arg: OpDef.ArgDef) -> bool:
        if arg.type_list_attr:
            return False
        types = declared[arg.type_attr] if arg.type_attr else [arg.type]
        return bool(types) and all(DataType(number).is_integer for number in types)

    found = [
        only_integers(arg) and not dtype.is_ref for arg, dtype in zip(args, dtypes, strict=True)
    ]
    sources = {arg.type_attr or arg.type for arg in op_def.input_arg}
    return found if len(sources) > 1 or len(op_def.input_arg) > 2 else [False] * len(found)


class _Search:
    """Finds the inputs of one node."""

    def __init__(
        self, draw: Draw, source: CallSource, node: NodeDef, given: Mapping[int, Any]
    ) -> None:
        self._draw = draw
        self._source = source
        self._node = node
        self._given = given

    def shapes(self, is_index: Sequence[bool], is_fixed: Sequence[bool]) -> list[tuple[int, ...]]:
        """Shapes that the shape function accepts together.

        Side inputs are mostly scalars and vectors: indices are, and about half of the inputs of a
        fixed type. Often all sizes are the same.
        """
        shapes: list[Shape] = [None] * len(is_index)
        for index, value in self._given.items():
            shapes[index] = np.shape(value)
        sizes = list(_SIZES)
        choices = self._draw(st.sampled_from([len(sizes), 1, len(sizes)]))
        if choices == 1:
            sizes[0] = self._draw(st.integers(1, 4))
        preferred = self._draw(st.sampled_from([*_RANKS, *_ranks_of_windows(self._node)]))
        for index in range(len(shapes)):
            if index not in self._given:
                if is_index[index] and self._is_like_the_last(shapes, index, is_index):
                    continue
                is_aside = is_index[index] or (is_fixed[index] and self._draw(st.booleans()))
                self._find_shape(shapes, index, is_aside, sizes[:choices], preferred)
            if choices > 1:
                new = [size for size in shapes[index] or () if size and size not in sizes[:2]]
                sizes[:0] = new
                choices += len(new)
        if not self._accepts(shapes):
            reject()
        return shapes  # type: ignore[return-value]  # none is unknown any more

    def values(
        self,
        shapes: Sequence[tuple[int, ...]],
        dtypes: Sequence[DataType],
        is_index: Sequence[bool],
    ) -> list[Any]:
        """Values that the shape function accepts."""
        values: list[Any] = [self._given.get(index) for index in range(len(shapes))]
        for index, shape in enumerate(shapes):
            if index in self._given:
                continue
            if not is_index[index]:
                values[index] = draw_tensor(self._draw, dtypes[index].base, shape)
                continue
            others = [*shapes[:index], *shapes[index + 1 :]]
            for candidate in self._indices(dtypes[index], shape, others):
                values[index] = candidate
                if self._accepts(shapes, values):
                    break
            else:
                reject()
        if not self._accepts(shapes, values):
            reject()
        return values

    def _indices(
        self, dtype: DataType, shape: Sequence[int], others: Sequence[Any]
    ) -> Iterator[Array]:
        """Values for an input that the shape function is likely to read: drawn ones, then plain ones."""
        for _ in range(_TRIES):
            yield draw_indices(self._draw, dtype, shape, others)
        for value in (0, 1, 2):
            yield np.full(shape, value, dtype.numpy_dtype)

    def _is_like_the_last(self, shapes: list[Shape], index: int, is_index: Sequence[bool]) -> bool:
        """Whether an input of indices got the shape of the one before it, as ranges have."""
        if index == 0 or not is_index[index - 1] or self._draw(st.booleans()):
            return False
        shapes[index] = shapes[index - 1]
        if not self._accepts(shapes):
            shapes[index] = None
        return shapes[index] is not None

    def _find_shape(
        self, shapes: list[Shape], index: int, is_aside: bool, sizes: Sequence[int], preferred: int
    ) -> None:
        """Set the shape of one input."""
        can_judge = self._accepts(shapes)
        known = [shape for shape in shapes[:index] if shape is not None]
        if known and not is_aside and self._draw(st.integers(0, 2)) == 0:
            shapes[index] = known[self._draw(st.integers(0, len(known) - 1))]
            if not can_judge or self._accepts(shapes):
                return
        rank = self._draw(st.sampled_from([0, 1, 2, 0])) if is_aside else preferred
        if not is_aside and self._draw(st.integers(0, 3)) == 3:
            rank = self._draw(st.integers(0, 4))
        shapes[index] = (None,) * rank
        if can_judge:
            ranks = (r for r in range(_MAX_RANK + 1) if r != rank)
            while not self._accepts(shapes) and (other := next(ranks, None)) is not None:
                shapes[index] = (None,) * other
        for axis in range(len(shapes[index] or ())):
            self._find_size(shapes, index, axis, sizes, can_judge)

    def _find_size(
        self, shapes: list[Shape], index: int, axis: int, sizes: Sequence[int], can_judge: bool
    ) -> None:
        """Set one size of the shape of an input, small enough for the whole."""
        shape = shapes[index] or ()
        room = _MAX_ELEMENTS // max(int(np.prod([s for s in shape[:axis] if s] or [1])), 1)
        drawn = sizes[self._draw(st.integers(0, len(sizes) - 1))]
        for size in dict.fromkeys([drawn, *sizes, *_SIZES, *_further(sizes)]):
            if size <= max(room, 1):
                shapes[index] = (*shape[:axis], size, *shape[axis + 1 :])
                if not can_judge or self._accepts(shapes):
                    return
        reject()

    def _accepts(self, shapes: Sequence[Shape], values: Sequence[Any] = ()) -> bool:
        return self._source.accepts(self._node, shapes, values)


def _ranks_of_windows(node: NodeDef) -> list[int]:
    """The ranks that attrs with one number a dimension speak of, several times."""
    lengths = [len(value.list.i) for value in node.attr.values()]
    return [length for length in lengths if length in (4, 5)] * len(_RANKS)


def _further(sizes: Sequence[int]) -> Iterator[int]:
    """Sizes that may go with others: sums and products of them, and all small ones."""
    few = sizes[:6]
    yield from (a + b for a in few for b in few)
    yield from (a * b for a in few for b in few)
    yield from range(5, 20)
