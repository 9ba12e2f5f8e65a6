"""The array that holds the gradients of a TensorArray, and the order in which it is used."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import opkernel.gradients as g
from opkernel.graph import get_default_graph

VERSIONS = ("", "V2", "V3")


@dataclass(frozen=True)
class GradientArray:
    """An array of gradients.

    Attributes:
        handle: the handle.
        flow: the tensor that its users have to wait for.
        version: the version of the ops on it, as their names end in.
    """

    handle: g.Tensor
    flow: g.Tensor
    version: str

    @classmethod
    def of(cls, op: g.Operation, flow: g.Tensor) -> "GradientArray":
        """The gradient array of an operation's array; it is there once `flow` is."""
        version = op.type[-2:] if op.type.endswith(VERSIONS[1:]) else ""
        grad_of = getattr(g.nodes, f"TensorArrayGrad{version}")
        made = grad_of(op.inputs[0], flow, source=g.gradient_source())
        handle = made.grad_handle if version == "V3" else made
        with get_default_graph().control_dependencies([handle]):
            return cls(handle, g.nodes.Identity(flow, name="gradient_flow"), version)

    def apply(self, method: str, *inputs: Any, **attrs: Any) -> Any:
        """A node of an op on it: `apply("Read", index, dtype=...)`."""
        op = getattr(g.nodes, f"TensorArray{method}{self.version}")
        return op(self.handle, *inputs, self.flow, **attrs)


def gradient_of(method: str) -> Callable[[g.GradientFunction], g.GradientFunction]:
    """Registers the gradient function of all versions of an op on arrays."""
    return g.register_gradient(*[f"TensorArray{method}{version}" for version in VERSIONS])


def after_forward(op: g.Operation, flow: g.Tensor) -> Any:
    """The flow of gradients, once the operation itself has run."""
    written = g.nodes.Identity(op.outputs[0], name="flow_out")
    with get_default_graph().control_dependencies([written]):
        return g.nodes.Identity(flow, name="write_barrier")
