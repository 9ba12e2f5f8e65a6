"""`--random`: values for inputs that are not given, drawn by dtype and shape; equal in every run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.signature import graph_inputs
from opkernel.device.allocation import check_allocation
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.edit.prune import prune_and_order
from opkernel.types import DataType, PartialTensorShape

_OPTIONAL = "PlaceholderWithDefault"
_WORD_LENGTH = 5


def random_feeds(
    graph: Graph,
    fetches: Sequence[Tensor | Operation],
    feeds: Mapping[Tensor, Any],
    shapes: Mapping[Tensor, PartialTensorShape],
) -> dict[Tensor, Any]:
    """Values for the inputs that fetches need and nothing feeds, and for the tensors with a shape.

    Numbers are between 0 and 1, integers 0 or 1, which indices mostly may be; strings are words.

    Args:
        graph: the graph.
        fetches: the tensors and operations asked for.
        feeds: the values that are given.
        shapes: shapes for tensors; sizes that are unknown here and in the graph are 1.

    Raises:
        WrongUse: nothing is known of a shape, or no values of a type can be drawn.
        InvalidArgumentError: a shape does not fit its tensor.
        ResourceExhaustedError: a tensor would be larger than the limit.
    """
    tensors = [one for one in fetches if isinstance(one, Tensor)]
    targets = [one for one in fetches if isinstance(one, Operation)]
    needed = {*prune_and_order(tensors, targets, [*feeds, *shapes])}
    wanted = {
        tensor: None
        for tensor in graph_inputs(graph)
        if tensor.op in needed and tensor not in feeds and tensor.op.type != _OPTIONAL
    }
    random = np.random.default_rng(0)
    return {tensor: _drawn(random, tensor, shapes) for tensor in dict.fromkeys([*wanted, *shapes])}


def _sizes(tensor: Tensor, shapes: Mapping[Tensor, PartialTensorShape]) -> tuple[int, ...]:
    shape = tensor.shape.merge_with(shapes.get(tensor, PartialTensorShape(None)))
    if shape.rank is None:
        raise WrongUse(
            f"--random: the shape of {tensor.name} is not known; give it as "
            f"--input {tensor.name.removesuffix(':0')}:2,3"
        )
    return check_allocation([1 if size is None else size for size in shape.as_list()], tensor.dtype)


def _drawn(
    random: np.random.Generator, tensor: Tensor, shapes: Mapping[Tensor, PartialTensorShape]
) -> Any:
    dtype = tensor.dtype.base
    is_text = dtype is DataType.DT_STRING
    if dtype is DataType.DT_INVALID or (dtype.numpy_dtype.kind == "O" and not is_text):
        raise WrongUse(
            f"--random: {tensor.name} is of type {dtype.tf_name}, of which no value can be drawn"
        )
    shape = _sizes(tensor, shapes)
    if is_text:
        letters = random.integers(ord("a"), ord("z") + 1, (*shape, _WORD_LENGTH), np.uint8)
        return letters.view(f"S{_WORD_LENGTH}")[..., 0].astype(object)
    if dtype.is_floating or dtype.is_complex:
        return random.random(shape).astype(dtype.numpy_dtype)
    return random.integers(0, 2, shape).astype(dtype.numpy_dtype)
