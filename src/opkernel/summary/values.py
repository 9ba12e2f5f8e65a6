"""Summaries of numbers, histograms, text and graphs, in the form that TensorBoard's plugins read.

Source: TensorBoard plugins/scalar/summary_v2.py, plugins/histogram/summary_v2.py, plugins/text/summary_v2.py;
TensorFlow python/ops/summary_ops_v2.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import cast_to, convert, dtype_of, static_rank
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph
from opkernel.graph.core.default_graph import innermost_default
from opkernel.messages import short_repr
from opkernel.proto import GraphDef, SummaryMetadata
from opkernel.summary.writers import default_writer, get_step
from opkernel.types import DataType, object_scalar

_DEFAULT_BUCKETS = 30
_INT64 = np.iinfo(np.int64)
_FLOAT, _DOUBLE = DataType.DT_FLOAT, DataType.DT_DOUBLE


def write(
    tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None
) -> bool:
    """Write a tensor as a summary of the default writer, if there is one.

    Args:
        tag: The tag.
        tensor: The tensor, or a function that gives it, which is only called if a summary is written.
        step: The step, an integer; that of `set_step` or `as_default` if not given.
        metadata: A SummaryMetadata, or a serialized one: which plugin of TensorBoard shows the tensor.
        name: Ignored.

    Returns:
        Whether a summary is written; in a function that is being traced, each time that it runs.

    Raises:
        InvalidArgumentError: there is no step, or an argument has a wrong type.
        OpError: the file cannot be written.
    """
    writer = default_writer()
    if writer is None:
        return False
    step = get_step() if step is None else step
    if step is None:
        raise InvalidArgumentError(
            "A summary needs a step: give `step`, or call opkernel.summary.experimental.set_step"
        )
    text = metadata.SerializeToString() if isinstance(metadata, SummaryMetadata) else metadata
    if not isinstance(text, bytes | None):
        raise InvalidArgumentError(f"metadata is a SummaryMetadata, not {short_repr(metadata)}")
    raw_ops.WriteSummary(
        writer=writer.handle,
        step=_as_int64(step),
        tensor=convert(tensor() if callable(tensor) else tensor),
        tag=object_scalar(_text("The tag", tag)),
        summary_metadata=object_scalar(text or b""),
    )
    return True


def _text(what: str, given: Any) -> bytes:
    if not isinstance(given, str | bytes):
        raise InvalidArgumentError(f"{what} is a string, not {short_repr(given)}")
    return given.encode("utf-8", "surrogateescape") if isinstance(given, str) else given


def _as_int64(step: Any) -> Any:
    if isinstance(step, int):
        if not _INT64.min <= step <= _INT64.max:
            raise InvalidArgumentError(f"The step {step} is no int64")
        return np.int64(step)
    tensor = convert(step)
    if not dtype_of(tensor).is_integer or static_rank(tensor) not in (0, None):
        raise InvalidArgumentError(f"A step is an integer, not {short_repr(step)}")
    return cast_to(tensor, DataType.DT_INT64)


def write_for_plugin(
    plugin: str,
    name: str,
    step: Any,
    tensor: Callable[[], Any],
    *,
    content: bytes = b"",
    description: str | None = None,
) -> bool:
    """Write the tensor of a plugin of TensorBoard, as `write` does."""
    if description is not None and not isinstance(description, str):
        raise InvalidArgumentError(f"A description is a string, not {short_repr(description)}")
    data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    metadata = SummaryMetadata(plugin_data=data, summary_description=description or "")
    return write(name, tensor, step, metadata)


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Write a number, as float32; as `write`.

    Args:
        name: The tag.
        data: The number.
        step: The step.
        description: A description, in Markdown.
    """

    def tensor() -> Any:
        number = convert(data)
        if static_rank(number) not in (0, None):
            raise InvalidArgumentError(f"A scalar has rank 0, and {short_repr(data)} has not")
        return cast_to(number, _FLOAT)

    return write_for_plugin("scalars", name, step, tensor, description=description)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Write strings, in Markdown; as `write`.

    Args:
        name: The tag.
        data: A string, or a tensor of strings; TensorBoard shows a matrix as a table.
        step: The step.
        description: A description, in Markdown.
    """

    def tensor() -> Any:
        strings = convert(data)
        if dtype_of(strings) != DataType.DT_STRING:
            raise InvalidArgumentError(f"A text is of strings, not {short_repr(data)}")
        return strings

    return write_for_plugin("text", name, step, tensor, description=description)


def histogram(
    name: str,
    data: Any,
    step: Any = None,
    buckets: int | None = None,
    description: str | None = None,
) -> bool:
    """Write a histogram of numbers: a tensor [buckets, 3] with the edges of each bucket and its count; as `write`.

    Args:
        name: The tag.
        data: The numbers, of any shape.
        step: The step.
        buckets: How many buckets there are, 30 if not given; they are equally wide.
        description: A description, in Markdown.
    """
    count = _DEFAULT_BUCKETS if buckets is None else buckets
    if not isinstance(count, int | np.integer):
        raise InvalidArgumentError(f"buckets is an integer, not {short_repr(buckets)}")

    def tensor() -> Any:
        numbers = cast_to(raw_ops.Reshape(tensor=convert(data), shape=[-1]), _DOUBLE)
        return _buckets(numbers, max(int(count), 0))

    return write_for_plugin("histograms", name, step, tensor, description=description)


def _buckets(numbers: Any, count: int) -> Any:
    """The histogram of a vector, [count, 3]. Where all numbers are equal, the last bucket has them."""
    zeros = np.zeros((count, 3))
    if not count:
        return zeros
    with np.errstate(all="ignore"):
        least = raw_ops.Min(input=numbers, axis=0)
        most = raw_ops.Max(input=numbers, axis=0)
        width = (most - least) / np.float64(count)
        places = raw_ops.Floor(x=(numbers - least) / width)
        is_single = raw_ops.Equal(x=most, y=least)
        places = raw_ops.SelectV2(condition=is_single, t=np.float64(count), e=places)
        places = raw_ops.Minimum(x=cast_to(places, DataType.DT_INT32), y=np.int32(count - 1))
        counts = raw_ops.UnsortedSegmentSum(
            data=raw_ops.OnesLike(x=numbers), segment_ids=places, num_segments=np.int32(count)
        )
        inner = least + width * np.arange(1, count, dtype=np.float64)
        edges = [raw_ops.Reshape(tensor=edge, shape=[1]) for edge in (least, most)]
        left = raw_ops.ConcatV2(values=[edges[0], inner], axis=0)
        right = raw_ops.ConcatV2(values=[inner, edges[1]], axis=0)
        table = raw_ops.Pack(values=[left, right, counts], axis=1)
        has_numbers = raw_ops.Greater(x=raw_ops.Size(input=numbers), y=np.int32(0))
        return raw_ops.SelectV2(condition=has_numbers, t=table, e=zeros)


def graph(graph_data: Graph | GraphDef) -> bool:
    """Write a graph, which TensorBoard draws, if there is a default writer; not in functions that are traced.

    Args:
        graph_data: A Graph, or a GraphDef.

    Returns:
        Whether it was written.

    Raises:
        InvalidArgumentError: it is no graph, or a function is being traced.
        OpError: the file cannot be written.
    """
    if innermost_default() is not None:
        raise InvalidArgumentError("graph() cannot be invoked inside a graph context")
    if not isinstance(graph_data, Graph | GraphDef):
        raise InvalidArgumentError(f"{short_repr(graph_data)} is neither a Graph nor a GraphDef")
    writer = default_writer()
    if writer is None:
        return False
    graph_def = graph_data.as_graph_def(True) if isinstance(graph_data, Graph) else graph_data
    content = object_scalar(graph_def.SerializeToString())
    raw_ops.WriteGraphSummary(writer=writer.handle, step=np.int64(0), tensor=content)
    return True
