"""How callers name the inputs and outputs of a SavedModel: as a signature names them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.output import abridged
from opkernel.cli.signature import Element, GraphInterface, find_tensor
from opkernel.cli.signature_ports import SignaturePort, ports_of
from opkernel.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.edit.prune import prune_and_order
from opkernel.messages import did_you_mean
from opkernel.proto import SignatureDef
from opkernel.types import tensor_from_proto


class SignatureInterface(GraphInterface):
    """The inputs and outputs of a signature; other tensors of the graph are called by their names.

    Attributes:
        name: the signature.
    """

    def __init__(self, graph: Graph, name: str, definition: SignatureDef, where: str) -> None:
        super().__init__(graph)
        self.name = name
        self._where = where
        self._definition = definition
        self._inputs = {port.name: port for port in ports_of(definition.inputs)}
        self._outputs = {port.name: port for port in ports_of(definition.outputs)}

    @property
    def input_names(self) -> dict[str, str]:
        """The names of the inputs by their tensors."""
        return {port.tensor: port.name for port in self._inputs.values()}

    def input(self, name: str) -> Tensor:
        """The tensor of an input of the signature, or of the graph."""
        return self._find(name, self._inputs, "input")

    def fetches(self, names: Sequence[str]) -> dict[str, Element]:
        """The tensors of outputs of the signature, or of the graph; without names, all outputs."""
        if not names and not self._outputs:
            raise WrongUse(f"signature {self.name!r} has no outputs: name with --fetch what to run")
        found: dict[str, Element] = {}
        for name in names or self._outputs:
            if name in self._outputs:
                found[name] = self._find(name, self._outputs, "output")
            else:
                found |= self._of_graph(name)
        return found

    def defaults(self, elements: Iterable[Element], feeds: Collection[Tensor]) -> dict[Tensor, Any]:
        """The values that the signature has for inputs that are needed and not fed.

        Raises:
            InvalidArgumentError: an input has none.
        """
        every = [*elements]
        tensors = [one for one in every if isinstance(one, Tensor)]
        targets = [one for one in every if isinstance(one, Operation)]
        needed = {*prune_and_order(tensors, targets, [*feeds])}
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
            raise InvalidArgumentError(self._missing(missing))
        return found

    def _find(self, name: str, ports: Mapping[str, SignaturePort], what: str) -> Tensor:
        if name in ports:
            return self._tensor(ports[name])
        try:
            return find_tensor(self.graph, name, "inputs" if what == "input" else "outputs")
        except NotFoundError:
            raise NotFoundError(self._unknown(name, ports, what)) from None

    def _of_graph(self, name: str) -> dict[str, Element]:
        try:
            return super().fetches([name])
        except NotFoundError:
            raise NotFoundError(self._unknown(name, self._outputs, "output")) from None

    def _tensor(self, port: SignaturePort) -> Tensor:
        try:
            return self.graph.get_tensor_by_name(port.tensor)
        except (OpError, ValueError) as error:
            raise DataLossError(
                f"{self._where} is damaged: signature {self.name!r} needs {port.tensor!r} for "
                f"{port.name!r}, which the graph lacks"
            ) from error

    def _unknown(self, name: str, ports: Mapping[str, SignaturePort], what: str) -> str:
        known = abridged(port.text for port in ports.values()) or "none"
        return (
            f"signature {self.name!r} has no {what} {name!r}, and the graph no such tensor; its "
            f"{what}s are {known}{did_you_mean(name, ports)}"
        )

    def _missing(self, missing: Sequence[SignaturePort]) -> str:
        wanted = ", ".join(port.text for port in missing)
        options = " ".join(f"--input {port.name}=VALUE" for port in missing)
        return f"signature {self.name!r} needs {wanted}: {options}"
