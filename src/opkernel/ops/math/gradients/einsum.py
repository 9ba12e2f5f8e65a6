"""The gradient of Einsum: sums of products of the gradient and the other operand.

An operand's gradient comes in four steps:

1. the product, summed to the labels that the operand shares with the rest;
2. the sum over batch axes along which the operand was repeated;
3. the repetition along labels that only the operand has;
4. the diagonal, where a label stands twice.
"""

from dataclasses import dataclass
from typing import Any

import opkernel.gradients as g

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
        return g.nodes.StridedSlice(
            g.nodes.Shape(self.tensor), [begin], [end], [1], end_mask=int(end == 0)
        )

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
        gradient = g.nodes.Einsum([gradient], equation=f"{''.join(unique)}->{term.text}")
    return gradient


def _product(terms: list[_Term], wanted: list[str]) -> _Term:
    """The product of tensors, with batch axes in front where only the tensors have some."""
    has_batch = any(_BATCH in term.labels for term in terms)
    text = "".join(wanted)
    if has_batch and _BATCH not in wanted:
        text = _BATCH + text
    equation = f"{','.join(term.text for term in terms)}->{text}"
    return _Term(g.nodes.Einsum([term.tensor for term in terms], equation=equation), text)


def _without_repeated_batches(product: _Term, term: _Term) -> _Term:
    """The product summed over the batch axes that the operand does not have, or has with size 1."""
    if _BATCH not in product.labels:
        return product
    sizes = product.sizes(_BATCH)
    if _BATCH in term.labels:
        own, text = term.sizes(_BATCH), product.text
        _, over = g.nodes.BroadcastGradientArgs(sizes, own)
    else:
        own, text = None, product.text.replace(_BATCH, "")
        over = g.nodes.Range(0, g.nodes.Size(sizes), 1)
    axes = g.nodes.AddV2(over, product.place(_BATCH)[0])
    total = g.nodes.Sum(product.tensor, axes)
    parts = [own if label == _BATCH else product.sizes(label) for label in product.labels]
    shape = [part for part in parts if part is not None]
    return _Term(g.nodes.Reshape(total, _joined(shape)), text)


def _repeated(common: _Term, labels: list[str], term: _Term) -> Any:
    """A tensor repeated along the labels that it lacks, as often as the operand is large."""
    ones = [common.sizes(label) if label in common.labels else [1] for label in labels]
    full = [term.sizes(label) for label in labels]
    return g.nodes.BroadcastTo(g.nodes.Reshape(common.tensor, _joined(ones)), _joined(full))


def _joined(parts: list[Any]) -> Any:
    return g.nodes.ConcatV2(parts, 0) if len(parts) > 1 else (parts or [[]])[0]
