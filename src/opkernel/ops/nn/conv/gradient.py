"""Gradients of convolutions, which are linear in the input and in the filters."""

from dataclasses import dataclass
from typing import Any

import opkernel.gradients as g


@dataclass(frozen=True)
class _Family:
    """A convolution, and its gradients by the input and by the filters.

    The other two ops give the gradients of each of the three.

    Attributes:
        names: The three ops.
        attrs: The attrs that all three have.
    """

    names: tuple[str, str, str]
    attrs: tuple[str, ...]

    def register(self) -> None:
        """Register the gradient functions."""
        functions = self._of_convolution, self._of_backprop_input, self._of_backprop_filter
        for name, function in zip(self.names, functions, strict=True):
            g.register_gradient(name)(function)

    def _of_convolution(self, op: g.Operation, grad: g.Tensor) -> g.Gradients:
        x, filters = op.inputs
        return self._by_input(op, x, filters, grad), self._by_filters(op, x, filters, grad)

    def _of_backprop_input(self, op: g.Operation, grad: g.Tensor) -> g.Gradients:
        _, filters, out_backprop = op.inputs
        by_filters = self._by_filters(op, grad, filters, out_backprop)
        return None, by_filters, self._node(op, 0, grad, filters)

    def _of_backprop_filter(self, op: g.Operation, grad: g.Tensor) -> g.Gradients:
        x, _, out_backprop = op.inputs
        return self._by_input(op, x, grad, out_backprop), None, self._node(op, 0, x, grad)

    def _by_input(self, op: g.Operation, x: g.Tensor, filters: g.Tensor, grad: g.Tensor) -> Any:
        return self._node(op, 1, g.shape_of(x), filters, grad)

    def _by_filters(self, op: g.Operation, x: g.Tensor, filters: g.Tensor, grad: g.Tensor) -> Any:
        return self._node(op, 2, x, g.shape_of(filters), grad)

    def _node(self, op: g.Operation, which: int, *inputs: g.Tensor) -> Any:
        """A node of one of the three ops, with the attrs of another."""
        return getattr(g.nodes, self.names[which])(*inputs, **g.attrs_of(op, *self.attrs))


_ATTRS = ("dilations", "strides", "padding", "data_format")
_2D = (*_ATTRS, "explicit_paddings")

for _name, _version, _attrs in (
    ("Conv2D", "", (*_2D, "use_cudnn_on_gpu")),
    ("Conv3D", "V2", _ATTRS),
    ("DepthwiseConv2dNative", "", _2D),
):
    _names = (_name, f"{_name}BackpropInput{_version}", f"{_name}BackpropFilter{_version}")
    _Family(_names, _attrs).register()
