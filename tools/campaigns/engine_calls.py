"""Calls of ops for engines: one call a graph, on constants that are fed, in the recorded shapes and in smaller ones."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from google.protobuf import text_format
from tests.engines.recorded import flat, node_and_values
from tests.xla.recorded import VECTORS, vectors_of
from tools.campaigns.engine_written_calls import written_calls
from tools.campaigns.samples import calls, graph_of_call

from opkernel.engines.openvino.op_rule import RULES
from opkernel.graph import Graph, Operation, import_graph_def
from opkernel.kernel.node_properties import args_of_node
from opkernel.opdef import global_op_registry
from opkernel.proto import AttrValue, GraphDef, NodeDef, OpDef
from opkernel.types import DataType, tensor_from_proto, tensor_to_proto
from opkernel.xla.op_registry import global_xla_op_registry

__all__ = [
    "KINDS",
    "SHAPES",
    "SUBNORMAL_BY_INFINITY",
    "EngineCall",
    "enlarged",
    "in_float32",
    "known_later",
    "pointwise",
    "recorded_calls",
    "sampled_calls",
    "special_feeds",
    "with_attrs",
    "with_shapes",
]


Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Array]


class EngineCall(NamedTuple):
    """A call of an op.

    Attributes:
        graph_def: The graph; what is called stands last.
        feeds: The constants that it takes, by the names of their nodes.
    """

    graph_def: GraphDef
    feeds: Feeds

    @property
    def op(self) -> str:
        """The op that is called."""
        return self.graph_def.node[-1].op

    @classmethod
    def of(cls, nodes: Sequence[NodeDef]) -> "EngineCall":
        """The call of the last of some nodes, whose constants are fed."""
        graph_def = graph_of_call(nodes)
        takers = [node for node in nodes if node is nodes[-1] or node.op == "AssignVariableOp"]
        taken = {name.removesuffix(":0") for node in takers for name in node.input}
        given = [node for node in nodes if node.op == "Const" and node.name in taken]
        values = {node.name: tensor_from_proto(node.attr["value"].tensor) for node in given}
        return cls(graph_def, {k: np.array(v) for k, v in values.items() if v.dtype != object})

    def graph(self) -> tuple[Graph, Operation]:
        """The graph, and the operation that is called; raises OpError where it is not in order."""
        graph = Graph()
        import_graph_def(self.graph_def, name="", graph=graph)
        return graph, graph.get_operation_by_name(self.graph_def.node[-1].name)


@functools.cache
def sampled_calls() -> list[EngineCall]:
    """The calls that stand in the repository."""
    return [EngineCall.of(nodes) for nodes in [*calls(), *written_calls()]]


def recorded_calls(ops: set[str] | None = None) -> Iterator[EngineCall]:
    """The calls recorded from TensorFlow that it accepted; none where the recordings are not there."""
    if not VECTORS.is_dir():
        return
    for vector in vectors_of(ops):
        if not vector.error:
            yield EngineCall.of(_nodes(vector))


def _nodes(vector: Any) -> list[NodeDef]:
    """The nodes of a recorded call."""
    called, values = node_and_values(vector)
    called.name = "called"
    types = flat(vector.input_dtypes)
    nodes = []
    for number, (value, dtype) in enumerate(zip(values, types, strict=True)):
        tensor = tensor_to_proto(value, DataType.from_string(dtype))
        node = NodeDef(name=f"input_{number}", op="Const")
        node.attr["dtype"].type = tensor.dtype
        node.attr["value"].tensor.CopyFrom(tensor)
        nodes.append(node)
    called.input[:] = [node.name for node in nodes]
    return [*nodes, called]


def in_float32(call: EngineCall) -> EngineCall | None:
    """The call on float32, which the OpenVINO engine takes; None where the op has no type to choose, or not this one."""
    changed = GraphDef()
    changed.CopyFrom(call.graph_def)
    node = changed.node[-1]
    if "T" not in node.attr or node.attr["T"].type == DataType.DT_FLOAT:
        return None
    inputs, _ = args_of_node(node, global_op_registry().look_up_op_def(node.op))
    op_def = global_op_registry().look_up_op_def(node.op)
    typed = {arg.name for arg in op_def.input_arg if arg.type_attr == "T"}
    names = {
        node.input[i] for arg in inputs if arg.name in typed for i in range(arg.start, arg.stop)
    }
    if any(name not in call.feeds or call.feeds[name].dtype.kind not in "iufb" for name in names):
        return None
    node.attr["T"].type = DataType.DT_FLOAT
    for one in changed.node:
        if one.name in names:
            one.attr["dtype"].type = one.attr["value"].tensor.dtype = DataType.DT_FLOAT
    feeds = {
        name: value.astype(np.float64).clip(-1e4, 1e4).astype(np.float32)
        if name in names
        else value
        for name, value in call.feeds.items()
    }
    return _with_feeds(EngineCall(changed, feeds), feeds)


# Shapes


def _ones(feeds: Feeds) -> Mapping[int, int]:
    return {size: 1 for value in feeds.values() for size in value.shape if size}


def _first(feeds: Feeds) -> int:
    """The first size of the first value that has one, mostly that of the batch."""
    return next((value.shape[0] for value in feeds.values() if value.ndim), 1)


def _last(feeds: Feeds) -> int:
    return next((value.shape[-1] for value in feeds.values() if value.ndim), 1)


SHAPES: Mapping[str, Callable[[Feeds], Mapping[int, int]]] = {
    "as recorded": lambda feeds: {},
    "all sizes 1": _ones,
    "one row": lambda feeds: {_first(feeds): 1},
    "no rows": lambda feeds: {_first(feeds): 0},
    "one column": lambda feeds: {_last(feeds): 1},
    "no columns": lambda feeds: {_last(feeds): 0},
}
"""What sizes become: all that are equal become equal."""


def with_shapes(call: EngineCall, shape: str) -> EngineCall | None:
    """A call in other shapes; None where its shapes stay the same."""
    sizes = SHAPES[shape](call.feeds)
    feeds = {name: _cut(value, sizes) for name, value in call.feeds.items()}
    if shape != "as recorded" and all(
        feeds[name].shape == call.feeds[name].shape for name in feeds
    ):
        return None
    return _with_feeds(call, feeds)


def _cut(value: Array, sizes: Mapping[int, int]) -> Array:
    return value[tuple([slice(sizes.get(size, size)) for size in value.shape])].copy()


def enlarged(engine: str, call: EngineCall) -> EngineCall:
    """A call in shapes three times as large, as far as the engine need not know the values when it compiles."""
    places = known_later(engine, call)
    feeds = {
        name: np.resize(value, [3 * size for size in value.shape]) if name in places else value
        for name, value in call.feeds.items()
    }
    return _with_feeds(call, feeds)


def _with_feeds(call: EngineCall, feeds: Feeds) -> EngineCall:
    """A call on other constants."""
    graph_def = GraphDef()
    graph_def.CopyFrom(call.graph_def)
    for node in graph_def.node:
        if node.name in feeds:
            tensor = node.attr["value"].tensor
            tensor.CopyFrom(tensor_to_proto(feeds[node.name], DataType(tensor.dtype)))
    return EngineCall(graph_def, feeds)


def known_later(engine: str, call: EngineCall) -> set[str]:
    """The fed nodes whose values the engine need not know when it compiles."""
    _, called = call.graph()
    known: Sequence[int] = ()
    if engine == "xla":
        registry = global_xla_op_registry()
        known = registry.compile_time_constant_inputs(called.node_def, called.op_def)
    else:
        rule = RULES.find(called.type)
        known = () if rule is None else rule.constant_places(called)
    return call.feeds.keys() - {called.inputs[place].op.name for place in known}


# Attrs


def with_attrs(call: EngineCall) -> Iterator[tuple[str, EngineCall]]:
    """A call with one attr changed that says how to compute, and the change in words."""
    node = call.graph_def.node[-1]
    op_def = global_op_registry().look_up_op_def(node.op)
    for attr in op_def.attr:
        for value in _other_values(attr, node.attr[attr.name]):
            changed = GraphDef()
            changed.CopyFrom(call.graph_def)
            changed.node[-1].attr[attr.name].CopyFrom(value)
            told = text_format.MessageToString(value, as_one_line=True)
            yield f"{attr.name}: {told}", EngineCall(changed, call.feeds)


def _other_values(attr: OpDef.AttrDef, value: AttrValue) -> list[AttrValue]:
    if attr.type == "bool":
        return [AttrValue(b=not value.b)]
    if attr.type == "int":
        return [AttrValue(i=i) for i in (-1, 0, 1, 2) if i != value.i]
    if attr.type == "float":
        return [AttrValue(f=f) for f in (0.0, 0.5, -1.0, 1e30) if f != value.f]
    if attr.type == "string":
        allowed = [*attr.allowed_values.list.s]
        return [AttrValue(s=s) for s in allowed if s != value.s]
    if attr.type == "list(int)" and value.list.i:
        numbers = [*value.list.i]
        others = ([1] * len(numbers), numbers[::-1], [*numbers[:-1], numbers[-1] + 1])
        return [AttrValue(list=AttrValue.ListValue(i=i)) for i in others if i != numbers]
    return []


# Values

KINDS = ("NaN", "infinity", "subnormal", "extreme integers", "beyond integers")
"""Kinds of numbers that engines may compute with in another way."""

SUBNORMAL_BY_INFINITY = "subnormal, infinity"

_PLACES = (slice(None), slice(None, None, 7))
"""Everywhere, and beside other numbers: few sizes are a multiple of 7."""


def _subnormal_and_infinite(dtype: np.dtype[Any]) -> list[Any]:
    found = _special_numbers(dtype, of_integers=False)
    return [*found.get("subnormal", []), *found.get("infinity", [])]


def _numbers_of_kind(kind: str, dtype: np.dtype[Any], *, of_integers: bool) -> list[Any]:
    return _special_numbers(dtype, of_integers=of_integers).get(kind, [])


def _special_numbers(dtype: np.dtype[Any], *, of_integers: bool) -> dict[str, list[Any]]:
    """Numbers of a type that engines may compute with in another way, by their kind.

    Args:
        dtype: The type.
        of_integers: Whether integers are made of them.
    """
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return {"extreme integers": [limits.max, limits.min]}
    of_type: Any = ml_dtypes.finfo  # which has no types itself
    try:
        facts = of_type(dtype if dtype.kind != "c" else f"f{dtype.itemsize // 2}")
    except ValueError:  # no numbers
        return {}
    small, largest = float(facts.smallest_subnormal), float(facts.max)
    found: dict[str, list[Any]] = {"NaN": [np.nan], "infinity": [np.inf, -np.inf]}
    if small < float(facts.tiny):
        found["subnormal"] = [8 * small, -8 * small]
    if of_integers:
        found["beyond integers"] = [x for x in (200.0, 7e4, 3e9, 5e9, 1e19) if x <= largest]
        found["beyond integers"] += [-x for x in found["beyond integers"]]
    return found


_ORDINARY = (0.0, 1.0, -1.5, 0.25)
_MENU = 8
"""So many numbers of which each meets each: some of a kind, and ordinary ones."""


def pointwise(engine: str, call: EngineCall) -> EngineCall:
    """A pointwise call on vectors in which each of some numbers meets each; another call in larger shapes."""
    _, called = call.graph()
    if (
        not 0 < len(call.feeds) <= 3
        or not called.traits.pointwise
        or not call.feeds
        or known_later(engine, call) != call.feeds.keys()
    ):
        return enlarged(engine, call)
    return _with_feeds(call, _menus(call, lambda dtype: []))


def _menus(call: EngineCall, numbers_of: Callable[[np.dtype[Any]], Sequence[Any]]) -> Feeds:
    """Vectors for all inputs that have all combinations of some numbers."""
    size = _MENU ** len(call.feeds)
    feeds = {}
    for place, (name, value) in enumerate(call.feeds.items()):
        numbers = [*numbers_of(value.dtype), *_ORDINARY]
        chosen = np.resize(np.array(numbers, object), _MENU)
        with np.errstate(all="ignore"):
            menu = np.array([np.asarray(one).astype(value.dtype) for one in chosen], value.dtype)
        feeds[name] = np.resize(np.repeat(menu, _MENU**place), size)
    return feeds


def special_feeds(engine: str, call: EngineCall) -> Iterator[tuple[str, Feeds]]:
    """The feeds of a call with special numbers among its inputs, and the kind of the numbers.

    Numbers that the engine must know when it compiles stay as they are.
    """
    _, called = call.graph()
    if called.traits.calls:
        return  # how often a loop turns may be among them
    places = known_later(engine, call)
    of_integers = any(dtype.numpy_dtype.kind in "iu" for dtype in called.output_types)
    if called.traits.pointwise and all(
        one.shape == (_MENU ** len(call.feeds),) for one in call.feeds.values()
    ):
        for kind in KINDS:
            yield (
                kind,
                _menus(call, functools.partial(_numbers_of_kind, kind, of_integers=of_integers)),
            )
        yield SUBNORMAL_BY_INFINITY, _menus(call, _subnormal_and_infinite)
        return
    for name, array in call.feeds.items():
        if name in places and array.size:
            for kind, numbers in _special_numbers(array.dtype, of_integers=of_integers).items():
                for number in numbers:
                    for place in _PLACES[: 1 if array.size == 1 else None]:
                        changed = array.copy()
                        with np.errstate(all="ignore"):
                            changed.reshape(-1)[place] = np.asarray(number).astype(array.dtype)
                        yield kind, {**call.feeds, name: changed}
