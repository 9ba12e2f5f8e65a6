"""Gradients of products of matrices: MatMul, BatchMatMul and its versions, Einsum.

Of a product of two matrices either may be flipped before.

An operand's gradient of Einsum comes in four steps:

1. the product, summed to the labels that the operand shares with the rest;
2. the sum over batch axes along which the operand was repeated;
3. the repetition along labels that only the operand has;
4. the diagonal, where a label stands twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import opkernel.gradients as g
from opkernel.graph import Tensor
from opkernel.types import DataType

n = g.nodes


Product = Callable[..., Any]
"""`product(a, b, flip_a=..., flip_b=..., of=...)` multiplies matrices; `of` is the operand ("a" or "b") whose gradient
the product is."""


def product_gradients(
    product: Product, a: Tensor, b: Tensor, grad: Tensor, flipped_a: bool, flipped_b: bool
) -> tuple[Any, Any]:
    """The gradients of `a` and `b` of `product(a, b)`.

    An operand that is flipped has a gradient that is flipped: the product of its gradient is then
    made the other way round.
    """
    if flipped_a:
        for_a = product(b, grad, flip_a=flipped_b, flip_b=True, of="a")
    else:
        for_a = product(grad, b, flip_a=False, flip_b=not flipped_b, of="a")
    if flipped_b:
        for_b = product(grad, a, flip_a=True, flip_b=flipped_a, of="b")
    else:
        for_b = product(a, grad, flip_a=not flipped_a, flip_b=False, of="b")
    return for_a, for_b


_FLIPS = ("transpose_a", "transpose_b")


@g.register_gradient("MatMul")
def matmul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    def product(a: g.Tensor, b: g.Tensor, *, flip_a: bool, flip_b: bool, of: str) -> Any:
        return n.MatMul(a, b, transpose_a=flip_a, transpose_b=flip_b, **{f"grad_{of}": True})

    a, b = (g.conj(tensor) for tensor in op.inputs)
    return product_gradients(product, a, b, grad, *map(op.get_attr, _FLIPS))


@g.register_gradient("SparseMatMul")
def sparse_matmul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    a, b = op.inputs
    types = {"a": a.dtype, "b": b.dtype}
    sparse = {a.name: op.get_attr("a_is_sparse"), b.name: op.get_attr("b_is_sparse")}
    sparse[grad.name] = grad.op.type == "ReluGrad"

    def product(a: g.Tensor, b: g.Tensor, *, flip_a: bool, flip_b: bool, of: str) -> Any:
        attrs = {"a_is_sparse": sparse[a.name], "b_is_sparse": sparse[b.name]}
        if flip_b:
            b = n.Transpose(b, [1, 0])
        both = n.SparseMatMul(a, b, transpose_a=flip_a, **attrs)
        is_wanted = types[of] == DataType.DT_FLOAT
        return both if is_wanted else n.Cast(both, DstT=types[of])

    return product_gradients(product, a, b, grad, *map(op.get_attr, _FLIPS))


g.register_gradient("BatchMatMul")(lambda op, grad: _gradients(op, grad, n.BatchMatMul))


@g.register_gradient("BatchMatMulV2", "BatchMatMulV3")
def batch_matmul_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    for_x, for_y = _gradients(op, grad, n.BatchMatMulV2)
    if _have_same_batch(x, y):
        return for_x, for_y
    x_shape, y_shape = g.shape_of(x), g.shape_of(y)
    over_x, over_y = n.BroadcastGradientArgs(_batch(x_shape), _batch(y_shape))
    return (
        n.Reshape(n.Sum(for_x, over_x), x_shape),
        n.Reshape(n.Sum(for_y, over_y), y_shape),
    )


def _gradients(op: g.Operation, grad: g.Tensor, matmul: Any) -> tuple[Any, Any]:
    def product(a: g.Tensor, b: g.Tensor, *, flip_a: bool, flip_b: bool, of: str) -> Any:
        return matmul(a, b, adj_x=flip_a, adj_y=flip_b)

    x, y = op.inputs
    return product_gradients(product, x, y, grad, op.get_attr("adj_x"), op.get_attr("adj_y"))


def _have_same_batch(x: g.Tensor, y: g.Tensor) -> bool:
    """Whether it is known that neither operand was broadcast."""
    x_dims, y_dims = x.shape.dims, y.shape.dims
    if x_dims is None or y_dims is None:
        return False
    return x_dims[:-2] == y_dims[:-2] and None not in x_dims[:-2]


def _batch(shape: g.Tensor) -> Any:
    """A shape without its last two sizes."""
    return n.StridedSlice(shape, [0], [-2], [1])


_BATCH = "..."


@g.register_gradient("Einsum")
def einsum_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    operands, _, result = op.get_attr("equation").decode().replace(" ", "").partition("->")
    terms = [_Term(x, labels) for x, labels in zip(op.inputs, operands.split(","), strict=True)]
    result_term = _Term(grad, result)
    return [
        _gradient_of(term, [result_term, *[t.conjugate for t in terms if t is not term]])
        for term in terms
    ]


@dataclass(frozen=True, eq=False)
class _Term:
    """A tensor and the labels of its axes, `...` among them for batch axes."""

    tensor: g.Tensor
    text: str

    @property
    def labels(self) -> list[str]:
        """The labels one by one."""
        before, batch, behind = self.text.partition(_BATCH)
        return [*before, *([batch] if batch else []), *behind]

    @property
    def conjugate(self) -> "_Term":
        return _Term(g.conj(self.tensor), self.text)

    def sizes(self, label: str) -> Any:
        """The sizes of the axes of a label as a vector: several for `...`, else one."""
        begin, end = self.place(label)
        return n.StridedSlice(n.Shape(self.tensor), [begin], [end], [1], end_mask=int(end == 0))

    def place(self, label: str) -> tuple[int, int]:
        """Where the axes of a label begin and end; behind `...` counted from the end, which is 0."""
        number = self.labels.index(label)
        length = len(self.labels)
        is_behind = _BATCH in self.labels[:number]
        begin = number - length if is_behind else number
        return begin, number + 1 - length if is_behind or label == _BATCH else begin + 1


def _gradient_of(term: _Term, others: list[_Term]) -> Any:
    unique = list(dict.fromkeys(term.labels))
    known = {label for other in others for label in other.labels}
    common = _product(others, [label for label in unique if label in known])
    common = _without_repeated_batches(common, term)
    gradient = common.tensor
    if common.labels != unique:
        gradient = _repeated(common, unique, term)
    if unique != term.labels:
        gradient = n.Einsum([gradient], equation=f"{''.join(unique)}->{term.text}")
    return gradient


def _product(terms: list[_Term], wanted: list[str]) -> _Term:
    """The product of tensors, with batch axes in front where only the tensors have some."""
    has_batch = any(_BATCH in term.labels for term in terms)
    text = "".join(wanted)
    if has_batch and _BATCH not in wanted:
        text = _BATCH + text
    equation = f"{','.join(term.text for term in terms)}->{text}"
    return _Term(n.Einsum([term.tensor for term in terms], equation=equation), text)


def _without_repeated_batches(product: _Term, term: _Term) -> _Term:
    """The product summed over the batch axes that the operand does not have, or has with size 1."""
    if _BATCH not in product.labels:
        return product
    sizes = product.sizes(_BATCH)
    if _BATCH in term.labels:
        own, text = term.sizes(_BATCH), product.text
        _, over = n.BroadcastGradientArgs(sizes, own)
    else:
        own, text = None, product.text.replace(_BATCH, "")
        over = n.Range(0, n.Size(sizes), 1)
    axes = n.AddV2(over, product.place(_BATCH)[0])
    total = n.Sum(product.tensor, axes)
    parts = [own if label == _BATCH else product.sizes(label) for label in product.labels]
    shape = [part for part in parts if part is not None]
    return _Term(n.Reshape(total, _joined(shape)), text)


def _repeated(common: _Term, labels: list[str], term: _Term) -> Any:
    """A tensor repeated along the labels that it lacks, as often as the operand is large."""
    ones = [common.sizes(label) if label in common.labels else [1] for label in labels]
    full = [term.sizes(label) for label in labels]
    return n.BroadcastTo(n.Reshape(common.tensor, _joined(ones)), _joined(full))


def _joined(parts: list[Any]) -> Any:
    return n.ConcatV2(parts, 0) if len(parts) > 1 else (parts or [[]])[0]
