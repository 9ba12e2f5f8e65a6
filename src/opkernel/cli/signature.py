"""How callers name the inputs and outputs of a graph: as its tensors are called, or as a signature names them.

A sparse tensor and other values of several parts have an entry for each part in a signature: `x.indices`, `x.0`.

Source: TensorFlow core/protobuf/meta_graph.proto (SignatureDef, TensorInfo).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from opkernel.cli.output import WrongUse, abridged
from opkernel.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.structural_ops import RETVAL_OPS
from opkernel.graph.edit.interface import graph_inputs, graph_outputs, split_by_need
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.graph.io.signature_names import default_signature, signature_names
from opkernel.interrupts import contextmanager
from opkernel.messages import did_you_mean
from opkernel.opdef import UnregisteredOpError
from opkernel.proto import MetaGraphDef, SignatureDef, TensorInfo, TensorShapeProto
from opkernel.types import DataType, PartialTensorShape, tensor_from_proto

if TYPE_CHECKING:
    from opkernel.cli.model import Model

__all__ = [
    "Element",
    "GraphInterface",
    "SignaturePort",
    "check_asked",
    "check_ops_registered",
    "choose_signature",
    "dtype_name",
    "find_fetches",
    "find_tensor",
    "graph_inputs",
    "graph_outputs",
    "interface_of",
    "needed_operations",
    "ports_of",
    "signature_names",
    "split_by_need",
    "split_elements",
]

_MAX_NAMED = 10

Element = Tensor | Operation


# The tensors and operations of a graph.


def split_elements(elements: Iterable[Element]) -> tuple[list[Tensor], list[Operation]]:
    """The tensors, and the operations, of what is asked for."""
    every = [*elements]
    tensors = [one for one in every if isinstance(one, Tensor)]
    return tensors, [one for one in every if isinstance(one, Operation)]


def needed_operations(elements: Iterable[Element], feeds: Collection[Tensor]) -> set[Operation]:
    """The operations that a step runs for tensors and operations."""
    return {*prune_and_order(*split_elements(elements), feeds)}


def find_fetches(graph: Graph, names: Sequence[str]) -> list[Element]:
    """The tensors of the names, or operations that give none; without names, all outputs.

    Raises:
        NotFoundError: there is none of a name; the message names the graph's own outputs.
        UnregisteredOpError: there are no names, and the outputs of an op of the graph are not known.
        WrongUse: there are no names, and the graph has no outputs.
    """
    if names:
        return [_find_fetch(graph, name) for name in names]
    check_ops_registered(graph)
    found: list[Element] = [*graph_outputs(graph)]
    if not found:
        raise WrongUse("the graph has no outputs of its own: name with --fetch what is asked for")
    return found


def check_ops_registered(graph: Graph) -> None:
    """Raise UnregisteredOpError for a graph with nodes whose ops are not known."""
    unknown: dict[str, str] = {}
    for op in graph.get_operations():
        if op.signature.registration is None:
            unknown.setdefault(op.type, op.name)
    if unknown:
        each = (f"{op_type} (node {name!r})" for op_type, name in unknown.items())
        raise UnregisteredOpError(f"The graph has ops that are not registered: {abridged(each)}")


def _find_fetch(graph: Graph, name: str) -> Element:
    if ":" not in name:
        with suppress(NotFoundError):
            operation = graph.get_operation_by_name(name)
            if not operation.outputs and operation.type not in RETVAL_OPS:
                return operation
    return find_tensor(graph, name, "outputs")


def find_tensor(graph: Graph, name: str, role: Literal["inputs", "outputs"]) -> Tensor:
    """The tensor of a name; `x` means `x:0`, and an output `x` that is a `_Retval` means its input.

    Raises:
        NotFoundError: there is none; the message names the graph's own inputs or outputs.
    """
    operation = graph.by_name.get(name)
    if role == "outputs" and operation is not None and operation.type in RETVAL_OPS:
        return operation.inputs[0]
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except NotFoundError as error:
        tensors = graph_inputs(graph) if role == "inputs" else graph_outputs(graph)
        names = abridged(tensor.name for tensor in tensors) or "none"
        raise NotFoundError(f"{error.message} The {role} of the graph: {names}.") from error


class GraphInterface:
    """The inputs and outputs of a graph, which are called as its tensors are.

    Attributes:
        graph: the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def input(self, name: str) -> Tensor:
        """The tensor to feed.

        Raises:
            NotFoundError: there is none; the message has the names that there are.
        """
        return find_tensor(self.graph, name, "inputs")

    def input_name(self, tensor: Tensor) -> str:
        """How callers name an input."""
        return tensor.op.name

    def fetches(self, names: Sequence[str]) -> dict[str, Element]:
        """The tensors and operations to compute, by what to call the results; without names, all outputs.

        Raises:
            NotFoundError: there is none of a name; the message has the names that there are.
            WrongUse: there are no names, and no outputs.
        """
        return {one.name: one for one in find_fetches(self.graph, names)}

    def defaults(self, elements: Iterable[Element], feeds: Collection[Tensor]) -> dict[Tensor, Any]:
        """The values of inputs that are needed, are not fed, and have a value of their own."""
        return {}


def interface_of(model: Model, graph: Graph) -> GraphInterface:
    """How callers of a model name what goes into a graph of it, and what comes out.

    Raises:
        NotFoundError, InvalidArgumentError: there is no such signature, or several and none was named.
    """
    if not model.is_saved_model:
        return GraphInterface(graph)
    name = choose_signature(model.meta_graph, model.signature_name)
    if name is None:
        return GraphInterface(graph)
    return _SignatureInterface(graph, name, model.meta_graph.signature_def[name], str(model))


def check_asked(model: Model, interface: GraphInterface, fetches: Sequence[str]) -> None:
    """Raise WrongUse where nothing is asked for, and the SavedModel has no signatures."""
    if not model.is_saved_model or fetches or type(interface) is not GraphInterface:
        return
    how = f"opkernel show {model} --name '*' lists its nodes"
    if not model.meta_graph.object_graph_def.nodes:
        raise WrongUse(f"{model} has no signatures: name with --fetch what to compute; {how}")
    raise WrongUse(
        f"{model} has no signatures. Its functions run from Python:\n"
        f"    model = opkernel.load({str(model)!r})\n"
        f"and tensors of its graph with --fetch NAME; {how}"
    )


# Signatures.


class SignaturePort(NamedTuple):
    """An input or output.

    Attributes:
        name: how callers name it.
        tensor: the tensor of the graph, as `x:0`.
        dtype: TensorFlow's name of its type.
        shape: its shape; None where nothing is known of it.
    """

    name: str
    tensor: str
    dtype: str
    shape: Sequence[int | None] | None

    @property
    def text(self) -> str:
        """Its name and type: `x float32[?,3]`."""
        sizes = "[...]" if self.shape is None else PartialTensorShape(self.shape)
        return f"{self.name} {self.dtype}{sizes}"


def choose_signature(meta_graph: MetaGraphDef, name: str | None) -> str | None:
    """The signature that is meant: that of the name, or serving_default, or the only one.

    None where the model has no signatures, and none was named.

    Raises:
        NotFoundError: there is none of this name.
        InvalidArgumentError: none was named, and there are several.
    """
    known = signature_names(meta_graph)
    listed = abridged(known, _MAX_NAMED) or "none"
    if name is not None:
        if name not in known:
            raise NotFoundError(
                f"the model has no signature {name!r}; it has {listed}{did_you_mean(name, known)}"
            )
        return name
    found = default_signature(known)
    if found is None and known:
        raise InvalidArgumentError(
            f"the model has several signatures: choose one with --signature_def, of {listed}"
        )
    return found


def ports_of(infos: Mapping[str, TensorInfo]) -> list[SignaturePort]:
    """The inputs or outputs of a signature, in the order of their names."""
    return [port for key in sorted(infos) for port in _ports(key, infos[key])]


def _ports(key: str, info: TensorInfo) -> Iterator[SignaturePort]:
    encoding = info.WhichOneof("encoding")
    dtype, shape = dtype_name(info.dtype), _shape(info.tensor_shape)
    if encoding == "composite_tensor":
        for number, part in enumerate(info.composite_tensor.components):
            yield from _ports(f"{key}.{number}", part)
    elif encoding == "coo_sparse":
        sparse, int64 = info.coo_sparse, DataType.DT_INT64.tf_name
        rank = None if shape is None else len(shape)
        yield SignaturePort(f"{key}.indices", sparse.indices_tensor_name, int64, [None, rank])
        yield SignaturePort(f"{key}.values", sparse.values_tensor_name, dtype, [None])
        yield SignaturePort(f"{key}.dense_shape", sparse.dense_shape_tensor_name, int64, [rank])
    else:
        yield SignaturePort(key, info.name, dtype, shape)


def dtype_name(number: int) -> str:
    """TensorFlow's name of a type; its number where there is no such type."""
    try:
        return DataType(number).tf_name
    except ValueError:
        return f"type {number}"


def _shape(proto: TensorShapeProto) -> Sequence[int | None] | None:
    try:
        return PartialTensorShape.from_proto(proto).dims
    except (OpError, ValueError):
        return None


class _SignatureInterface(GraphInterface):
    """The inputs and outputs of a signature; other tensors of the graph are called by their names."""

    def __init__(self, graph: Graph, name: str, definition: SignatureDef, where: str) -> None:
        super().__init__(graph)
        self._name = name
        self._where = where
        self._definition = definition
        self._inputs = {port.name: port for port in ports_of(definition.inputs)}
        self._outputs = {port.name: port for port in ports_of(definition.outputs)}

    def input(self, name: str) -> Tensor:
        """The tensor of an input of the signature, or of the graph."""
        if name in self._inputs:
            return self._tensor(self._inputs[name])
        with self._told_ports(name, self._inputs, "input"):
            return super().input(name)

    def input_name(self, tensor: Tensor) -> str:
        """The name of an input in the signature, or in the graph."""
        names = {port.tensor: port.name for port in self._inputs.values()}
        return names.get(tensor.name, tensor.op.name)

    def fetches(self, names: Sequence[str]) -> dict[str, Element]:
        """The tensors of outputs of the signature, or of the graph; without names, all outputs."""
        if not names and not self._outputs:
            raise WrongUse(
                f"signature {self._name!r} has no outputs: name with --fetch what to run"
            )
        found: dict[str, Element] = {}
        for name in names or self._outputs:
            if name in self._outputs:
                found[name] = self._tensor(self._outputs[name])
            else:
                with self._told_ports(name, self._outputs, "output"):
                    found |= super().fetches([name])
        return found

    def defaults(self, elements: Iterable[Element], feeds: Collection[Tensor]) -> dict[Tensor, Any]:
        """The values that the signature has for inputs that are needed and not fed.

        Raises:
            InvalidArgumentError: an input has none.
        """
        every = [*elements]
        needed = needed_operations(every, [*feeds])
        found: dict[Tensor, Any] = {}
        missing: list[SignaturePort] = []
        for port in self._inputs.values():
            tensor = self._tensor(port)
            if tensor in feeds or (tensor.op not in needed and tensor not in every):
                continue
            if port.name in self._definition.defaults:
                found[tensor] = tensor_from_proto(self._definition.defaults[port.name])
            elif tensor.op.type != "PlaceholderWithDefault":
                missing.append(port)
        if missing:
            wanted = ", ".join(port.text for port in missing)
            options = " ".join(f"--input {port.name}=VALUE" for port in missing)
            raise InvalidArgumentError(
                f"signature {self._name!r} needs {wanted}: {options}, or --random"
            )
        return found

    def _tensor(self, port: SignaturePort) -> Tensor:
        try:
            return self.graph.get_tensor_by_name(port.tensor)
        except (OpError, ValueError) as error:
            raise DataLossError(
                f"{self._where} is damaged: signature {self._name!r} needs {port.tensor!r} for "
                f"{port.name!r}, which the graph lacks"
            ) from error

    @contextmanager
    def _told_ports(
        self, name: str, ports: Mapping[str, SignaturePort], what: str
    ) -> Iterator[None]:
        """Within the block an error about a tensor that does not exist names the ports of the signature."""
        try:
            yield
        except NotFoundError:
            known = abridged(port.text for port in ports.values()) or "none"
            raise NotFoundError(
                f"signature {self._name!r} has no {what} {name!r}, and the graph no such tensor; its "
                f"{what}s are {known}{did_you_mean(name, ports)}"
            ) from None
