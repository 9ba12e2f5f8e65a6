"""instantiate_nodes: the nodes of a FunctionDef with its attrs filled in; and functions as text that people can read.

Inside a FunctionDef inputs are named by arguments: `x` or `x:1` of the function, `node:out:0` of a
node. The result names them as graphs do. A list argument becomes one `_Arg` node for each tensor.

    (x:float) -> (y:float) {
      a = Square[T=float](x)
      y = Add[T=float](a, a) @ n
    }

Source: TensorFlow core/framework/function.cc (InstantiateFunction, Print, DebugString).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from opkernel.errors import InternalError, InvalidArgumentError, NotFoundError, OpError
from opkernel.graph.core.node import copied
from opkernel.graph.core.older_nodes import OLDER_OPS, add_later_attrs
from opkernel.graph.core.structural_ops import ARG_OPS, RETVAL_OPS, STRUCTURAL_OPS
from opkernel.graph.core.tensor_name import format_input
from opkernel.opdef import (
    MAX_LIST_TENSORS,
    add_defaults_to_node_def,
    attr_value_has_type,
    format_node_def_for_error,
    substitute_placeholders,
    summarize_attr_value,
    summarize_op_def,
)
from opkernel.opdef.core.fingerprint import fingerprint64
from opkernel.opdef.core.validate import with_context
from opkernel.proto import AttrValue, FunctionDef, NodeDef, OpDef
from opkernel.records import dataclass, field
from opkernel.types import DataType


def print_instantiated(nodes: Iterable[NodeDef]) -> str:
    """The nodes of an instantiated function: arguments, results, and a line for each node."""
    nodes = list(nodes)
    arguments = _by_index(nodes, ARG_OPS)
    results = _by_index(nodes, RETVAL_OPS)
    body = [node for node in nodes if node.op not in ARG_OPS | RETVAL_OPS]
    takes = ", ".join(f"{node.name}:{_type(node)}" for node in arguments)
    gives = ", ".join(f"{node.input[0]}:{_type(node)}" for node in results)
    lines = "".join(f"  {print_node(node)}\n" for node in body)
    return f"\n({takes}) -> ({gives}) {{\n{lines}}}\n"


def print_node(node: NodeDef) -> str:
    """A node as an assignment: attrs in brackets, inputs in parentheses, control inputs after @."""
    attrs = ", ".join(f"{name}={print_attr_value(node.attr[name])}" for name in sorted(node.attr))
    inputs = ", ".join(text for text in node.input if not text.startswith("^"))
    controls = ", ".join(text[1:] for text in node.input if text.startswith("^"))
    bracketed = f"[{attrs}]" if attrs else ""
    return f"{node.name} = {node.op}{bracketed}({inputs})" + (f" @ {controls}" if controls else "")


def print_attr_value(value: AttrValue) -> str:
    """The value of an attr; types by their short names, functions with their attrs in brackets."""
    if value.HasField("type"):
        return DataType(value.type).string
    if value.HasField("list") and value.list.type:
        return "{" + ", ".join(DataType(number).string for number in value.list.type) + "}"
    if value.HasField("func"):
        attrs = value.func.attr
        parts = ", ".join(f"{name}={print_attr_value(attrs[name])}" for name in sorted(attrs))
        return f"{value.func.name}[{parts}]" if parts else value.func.name
    return summarize_attr_value(value)


def _by_index(nodes: list[NodeDef], op_types: frozenset[str]) -> list[NodeDef]:
    chosen = [node for node in nodes if node.op in op_types]
    return sorted(chosen, key=lambda node: node.attr["index"].i)


def _type(node: NodeDef) -> str:
    return DataType(node.attr["T"].type).string


_INTS_ON_DEVICE = "experimental_ints_on_device"
_UNIQUE_ID = "_resource_arg_unique_id"
_EXECUTOR = "_executor"

_MAY_HOLD_PLACEHOLDERS = (None, "placeholder", "func", "list")

Attrs = Mapping[str, AttrValue]
LookUpOpDef = Callable[[str], OpDef]


@dataclass(slots=True)
class Instantiation:
    """The result of instantiating a FunctionDef.

    Attributes:
        nodes: the arguments, the nodes of the body, the results. Names may occur twice.
        arg_types, ret_types: one for each tensor.
    """

    nodes: list[NodeDef] = field(default_factory=list)
    arg_types: list[DataType] = field(default_factory=list)
    ret_types: list[DataType] = field(default_factory=list)


def instantiate_nodes(function: FunctionDef, attrs: Attrs, look_up: LookUpOpDef) -> Instantiation:
    """The nodes of a function.

    Args:
        function: the function; it is not changed.
        attrs: values for the attrs of its signature; others are let pass.
        look_up: gives the ops of its nodes, functions among them.

    Raises:
        NotFoundError: an attr is missing, or an op is not registered.
        InvalidArgumentError: an attr has the wrong type, or an input or result does not exist or
            is of another type.
        InternalError: a list argument has no tensors.
    """
    _check_attrs(function.signature, attrs)
    body = _Body(function, attrs, look_up)
    for arg in function.signature.input_arg:
        _in_context(f"In {_print_arg(arg)}", body.add_argument, arg)
    nodes = [body.bind(node) for node in function.node_def]
    for node, op_def in nodes:
        _in_context(f"In {format_node_def_for_error(node)}", body.add_outputs, node, op_def)
    for node, op_def in nodes:
        _in_context(f"In {format_node_def_for_error(node)}", body.add_node, node, op_def)
    for arg in function.signature.output_arg:
        _in_context(f"In function output {_print_arg(arg)}", body.add_result, arg)
    body.connect()
    return body.result


def canonical_function_name(
    name: str, attrs: Attrs, options: Mapping[str, str] | None = None
) -> str:
    """A name that tells instances of a function apart: `Square[T=float]` (Canonicalize).

    Strings stand there as their fingerprints, except the name of the executor, which is left out
    where it is none. `options` are what tells instances apart besides: `_target`, `_state_handle`; an
    `_executor` there stands before that of the attrs.
    """
    texts = {key: _canonical_text(value) for key, value in attrs.items() if key != _EXECUTOR}
    if _EXECUTOR in attrs and attrs[_EXECUTOR].s:
        texts[_EXECUTOR] = attrs[_EXECUTOR].s.decode("utf-8", "surrogateescape")
    texts |= options or {}
    return f"{name}[{','.join(f'{key}={texts[key]}' for key in sorted(texts))}]"


def _canonical_text(value: AttrValue) -> str:
    return str(fingerprint64(value.s)) if value.HasField("s") else print_attr_value(value)


def _check_attrs(signature: OpDef, attrs: Attrs) -> None:
    for attr in signature.attr:
        if attr.name not in attrs:
            raise NotFoundError(
                f"Attr {attr.name} is not found from {summarize_op_def(signature)}",
                op=signature.name,
            )
        try:
            attr_value_has_type(attrs[attr.name], attr.type)
        except OpError as error:
            raise with_context(error, f"for attr '{attr.name}'") from None


@dataclass(frozen=True, slots=True)
class _Item:
    """The meaning of a name inside the function: tensors.

    `sources` are the numbers of nodes among the result's nodes, each with an output. The tensors of a list
    argument are the first outputs of nodes that follow one another.
    """

    sources: tuple[tuple[int, int], ...]
    types: tuple[DataType, ...]


class _Body:
    """The nodes made so far, and what the names inside the function stand for."""

    def __init__(self, function: FunctionDef, attrs: Attrs, look_up: LookUpOpDef) -> None:
        self.result = Instantiation()
        self._function = function
        self._attrs = attrs
        self._look_up = look_up
        self._defaults = {
            attr.name: attr.default_value
            for attr in function.signature.attr
            if attr.HasField("default_value")
        }
        self._ints_on_device = _INTS_ON_DEVICE in function.attr and function.attr[_INTS_ON_DEVICE].b
        self._items: dict[str, _Item] = {}
        self._numbers: dict[str, int] = {}
        self._first_node = 0
        self._inputs: list[list[tuple[int, int]]] = []
        self._controls: list[list[int]] = []

    def add_argument(self, arg: OpDef.ArgDef) -> None:
        """Make the `_Arg` nodes of an argument."""
        types = _types_of_arg(self._attrs, arg)
        if not types:
            raise InternalError("Expected a list of at least one dtype")
        first = len(self.result.nodes)
        self._add_items(arg.name, [(first + i, 0) for i in range(len(types))], types, "arg")
        for offset, dtype in enumerate(types):
            name = f"{arg.name}_{offset}" if len(types) > 1 else arg.name
            node = self._make_node(name, "Arg", dtype.ref if arg.is_ref else dtype, first + offset)
            if first + offset in self._function.resource_arg_unique_id:
                node.attr[_UNIQUE_ID].i = self._function.resource_arg_unique_id[first + offset]
            if first + offset in self._function.arg_attr:
                for key, value in self._function.arg_attr[first + offset].attr.items():
                    node.attr[key].CopyFrom(value)
            self.result.arg_types.append(dtype)
        self._first_node = len(self.result.nodes)

    def bind(self, node: NodeDef) -> tuple[NodeDef, OpDef]:
        """A node with placeholders replaced and defaults added, and its op."""
        if node.op in STRUCTURAL_OPS:
            raise InvalidArgumentError(
                f"The arguments and results of a function are those of its signature; node "
                f"'{node.name}' is a further {node.op}",
                node=node.name,
                op=node.op,
            )
        bound = copied(node)
        for name, value in node.attr.items():
            if value.WhichOneof("value") not in _MAY_HOLD_PLACEHOLDERS:
                continue
            replaced = substitute_placeholders(value, self._substitute)
            if replaced is None:
                raise InvalidArgumentError(
                    f"Failed to bind all placeholders in {summarize_attr_value(value)}",
                    node=node.name,
                    op=node.op,
                )
            bound.attr[name].CopyFrom(replaced)
        if node.op in OLDER_OPS:
            add_later_attrs(bound)
        try:
            op_def = self._look_up(node.op)
        except NotFoundError as error:
            function = self._function.signature.name
            error.add_context(f"In {format_node_def_for_error(node)} of function '{function}'")
            raise
        add_defaults_to_node_def(bound, op_def)
        return bound, op_def

    def add_outputs(self, node: NodeDef, op_def: OpDef) -> None:
        """Note what the names of a node's outputs stand for."""
        number = self._first_node + len(self._numbers)
        if node.name in self._numbers:
            raise InvalidArgumentError(f"Duplicated ret name: {node.name}")
        self._numbers[node.name] = number
        start = 0
        for arg in op_def.output_arg:
            types = _types_of_arg(node.attr, arg)
            sources = [(number, start + i) for i in range(len(types))]
            self._add_items(f"{node.name}:{arg.name}", sources, types, "ret")
            start += len(types)

    def add_node(self, node: NodeDef, op_def: OpDef) -> None:
        """Add a node of the body, and find what its inputs stand for."""
        texts = list(node.input)
        inputs: list[tuple[int, int]] = []
        position = 0
        for arg in op_def.input_arg:
            types = _types_of_arg(node.attr, arg)
            taken = 0
            while taken < len(types):
                if position >= len(texts):
                    raise InvalidArgumentError(
                        f"Attempt to access beyond input size: {position} >= {len(texts)}"
                    )
                item = self._match(node, arg, types, taken, texts[position])
                inputs += item.sources
                taken += len(item.types)
                position += 1
        controls = [self._control(index, texts[index]) for index in range(position, len(texts))]
        self.result.nodes.append(node)
        self._inputs.append(inputs)
        self._controls.append(controls)

    def add_result(self, arg: OpDef.ArgDef) -> None:
        """Make the `_Retval` nodes of a result."""
        returned = self._function.ret
        if arg.name not in returned:
            raise InvalidArgumentError(f"Return {arg.name} missing.")
        types = _types_of_arg(self._attrs, arg)
        item = self._items.get(returned[arg.name])
        if item is None:
            raise InvalidArgumentError(f"Return {arg.name} -> {returned[arg.name]} is not found.")
        if types != item.types:
            raise InvalidArgumentError(
                f"Invalid ret types {arg.name} : {_names(types)} vs. {_names(item.types)}"
            )
        for offset, dtype in enumerate(types):
            name = f"{arg.name}_RetVal" + (f"_{offset}" if len(types) > 1 else "")
            self._make_node(name, "Retval", dtype, len(self.result.ret_types))
            self._inputs[-1].append(item.sources[offset])
            self.result.ret_types.append(dtype)

    def connect(self) -> None:
        """Write the inputs of all nodes as graphs name them."""
        nodes = self.result.nodes
        for node, inputs, controls in zip(nodes, self._inputs, self._controls, strict=True):
            texts = [format_input(nodes[number].name, index) for number, index in inputs]
            texts += [f"^{nodes[number].name}" for number in controls]
            del node.input[:]
            node.input.extend(texts)

    def _match(
        self, node: NodeDef, arg: OpDef.ArgDef, types: tuple[DataType, ...], taken: int, text: str
    ) -> _Item:
        """The meaning of an input that is a part of an argument from `taken` on."""
        item = self._items.get(text)
        if item is None or not item.types:
            raise InvalidArgumentError(
                f"input {text} is not found: {format_node_def_for_error(node)}"
            )
        if len(item.types) > len(types) - taken:
            raise InvalidArgumentError(f"Input {text} too long for {arg.name}")
        for offset, dtype in enumerate(item.types):
            if dtype != types[taken + offset]:
                raise InvalidArgumentError(
                    f"input {arg.name}[{taken + offset}] expected type "
                    f"{types[taken + offset].string} != {dtype.string}, the type of "
                    f"{text}[{offset}]"
                )
        return item

    def _control(self, index: int, text: str) -> int:
        """The node that a control input comes from."""
        if not text.startswith("^"):
            raise InvalidArgumentError(
                f"Expected input[{index}] == '{text}' to be a control input."
            )
        name = text[1:]
        if name in self._numbers:
            return self._numbers[name]
        item = self._items.get(name)
        if item is None:
            raise InvalidArgumentError(f"input[{index}] == '{text}', is not found.")
        return item.sources[0][0] if item.sources else self._numbers[name.partition(":")[0]]

    def _make_node(self, name: str, kind: str, dtype: DataType, index: int) -> NodeDef:
        on_device = self._ints_on_device and dtype == DataType.DT_INT32
        node = NodeDef(name=name, op=f"_Device{kind}" if on_device else f"_{kind}")
        node.attr["T"].type = dtype
        node.attr["index"].i = index
        self.result.nodes.append(node)
        self._inputs.append([])
        self._controls.append([])
        return node

    def _add_items(
        self,
        name: str,
        sources: Sequence[tuple[int, int]],
        types: tuple[DataType, ...],
        kind: str,
    ) -> None:
        """Note what the name of an argument or output means, and that of each of its tensors."""
        items = {name: _Item(tuple(sources), types)}
        for offset, (source, dtype) in enumerate(zip(sources, types, strict=True)):
            items[f"{name}:{offset}"] = _Item((source,), (dtype,))
        for text, item in items.items():
            if self._items.setdefault(text, item) is not item:
                raise InvalidArgumentError(f"Duplicated {kind} name: {text}")

    def _substitute(self, name: str) -> AttrValue | None:
        return self._attrs[name] if name in self._attrs else self._defaults.get(name)


def _types_of_arg(attrs: Attrs, arg: OpDef.ArgDef) -> tuple[DataType, ...]:
    """The types of the tensors that an argument stands for, with these attrs."""
    if arg.type_list_attr:
        types = _attr_of(attrs, "type list", arg.type_list_attr).list.type
        return tuple([DataType(number) for number in types])
    count = 1
    if arg.number_attr:
        count = _attr_of(attrs, "number", arg.number_attr).i
        if not 0 <= count <= MAX_LIST_TENSORS:
            raise InvalidArgumentError(f"Number of tensors of {arg.name} is out of range: {count}")
    dtype = DataType(arg.type)
    if not dtype and arg.type_attr:
        dtype = DataType(_attr_of(attrs, "type", arg.type_attr).type)
    return (dtype,) * count


def _attr_of(attrs: Attrs, kind: str, name: str) -> AttrValue:
    if name not in attrs:
        raise NotFoundError(f"{kind} attr not found: {name}")
    return attrs[name]


def _in_context(context: str, step: Callable[..., None], *args: object) -> None:
    try:
        step(*args)
    except OpError as error:
        raise with_context(error, context) from None


def _print_arg(arg: OpDef.ArgDef) -> str:
    kind = arg.type_list_attr or arg.type_attr or DataType(arg.type).string
    count = f"{arg.number_attr}*" if arg.number_attr else ""
    return f"{arg.name}:{'Ref(' if arg.is_ref else ''}{count}{kind}{')' if arg.is_ref else ''}"


def _names(types: Sequence[DataType]) -> str:
    return ", ".join(dtype.string for dtype in types)
