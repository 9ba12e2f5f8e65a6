"""Ops that the converter of TensorFlow.js made up, or that TensorFlow's CPUs have no kernels for, as TensorFlow's ops.

`Prelu(x, alpha)` becomes the six nodes that Keras makes of it. A product that is fused with Prelu, and each fused depthwise
convolution, becomes the product and the ops after it. So does a matrix product with a computed bias: TensorFlow's optimiser
fuses `x @ a + h @ b` of an LSTM like this, TensorFlow.js adds any shape, and TensorFlow takes a vector only. The last node
has the name of the one that it stands for.

Source: TensorFlow.js tfjs-converter/python/tensorflowjs/converters/fuse_prelu.py, fuse_depthwise_conv2d.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.tensor_name import free_name
from opkernel.proto import AttrValue, GraphDef, NodeDef
from opkernel.types import DataType

_PRELU = "Prelu"
_BIAS_ADD = "BiasAdd"
_MATMUL = "_FusedMatMul"
_DEPTHWISE = ("FusedDepthwiseConv2dNative", "_FusedDepthwiseConv2dNative")
_PRODUCTS = {
    **dict.fromkeys(_DEPTHWISE, "DepthwiseConv2dNative"),
    "_FusedConv2D": "Conv2D",
    _MATMUL: "MatMul",
}
_OF_FUSION = (
    *("TArgs", "epsilon", "filter_format", "fused_ops"),
    *("leakyrelu_alpha", "num_args", "num_host_args"),
)
"""The attrs that the product alone has not."""
_NUM_OPERANDS = 2
_TAKES_ARGUMENT = (_BIAS_ADD, _PRELU)


def replace_tfjs_ops(graph_def: GraphDef) -> None:
    """Put TensorFlow's ops in the place of those of TensorFlow.js, in a graph outside of its functions.

    Raises:
        InvalidArgumentError: such a node has too few inputs.
    """
    constants = {node.name for node in graph_def.node if node.op == "Const"}
    if not any(_is_replaced(node, constants) for node in graph_def.node):
        return
    taken = {node.name for node in graph_def.node}
    nodes: list[NodeDef] = []
    for node in graph_def.node:
        if _is_replaced(node, constants):
            nodes += _Replacement(node, taken).nodes()
        else:
            nodes.append(node)
    replaced = GraphDef(node=nodes)
    del graph_def.node[:]
    graph_def.MergeFrom(replaced)


def _is_replaced(node: NodeDef, constants: set[str]) -> bool:
    if node.op in (_PRELU, *_DEPTHWISE):
        return True
    bias = node.input[_NUM_OPERANDS : _NUM_OPERANDS + 1]
    if node.op == _MATMUL and not constants.issuperset(bias):
        return True
    return node.op in _PRODUCTS and _PRELU.encode() in node.attr["fused_ops"].list.s


class _Replacement:
    """The nodes in the place of one.

    Args:
        node: The node.
        taken: The names that nodes have; new names are added.
    """

    def __init__(self, node: NodeDef, taken: set[str]) -> None:
        self._node = node
        self._taken = taken
        self._made: list[NodeDef] = []
        given = node.attr["T"] if "T" in node.attr else AttrValue(type=DataType.DT_FLOAT)
        self._type = given

    def nodes(self) -> list[NodeDef]:
        """The nodes, in the order in which they run."""
        values = [one for one in self._node.input if not one.startswith("^")]
        if self._node.op == _PRELU:
            if len(values) != _NUM_OPERANDS:
                raise self._too_few()
            self._prelu(*values)
        else:
            self._product(values)
        self._made[0].input.extend(one for one in self._node.input if one.startswith("^"))
        self._made[-1].name = self._node.name
        return self._made

    def _product(self, values: list[str]) -> None:
        node = self._node
        arguments = iter(values[_NUM_OPERANDS:])
        product = self._add(_PRODUCTS[node.op], values[:_NUM_OPERANDS], has_type=False)
        for name, value in node.attr.items():
            if name not in _OF_FUSION:
                product.attr[name].CopyFrom(value)
        for fused in node.attr["fused_ops"].list.s:
            self._after(fused.decode(errors="replace"), arguments)

    def _after(self, op: str, arguments: Iterator[str]) -> None:
        """Add an op after the node that was added last."""
        before = self._made[-1].name
        argument = next(arguments, None) if op in _TAKES_ARGUMENT else ""
        if argument is None:
            raise self._too_few()
        if op == _PRELU:
            self._prelu(before, argument)
        elif op == _BIAS_ADD and self._node.op == _MATMUL:
            self._add("AddV2", [before, argument])
        elif op == _BIAS_ADD:
            added = self._add(op, [before, argument])
            if "data_format" in self._node.attr:
                added.attr["data_format"].CopyFrom(self._node.attr["data_format"])
        elif op != "NoOp":
            added = self._add(op, [before])
            if op == "LeakyRelu" and "leakyrelu_alpha" in self._node.attr:
                added.attr["alpha"].CopyFrom(self._node.attr["leakyrelu_alpha"])

    def _prelu(self, x: str, alpha: str) -> None:
        """`relu(x) + -alpha * relu(-x)`."""
        positive = self._add("Relu", [x])
        negative = self._add("Relu", [self._add("Neg", [x]).name])
        scaled = self._add("Mul", [self._add("Neg", [alpha]).name, negative.name])
        self._add("AddV2", [positive.name, scaled.name])

    def _add(self, op: str, inputs: Collection[str], *, has_type: bool = True) -> NodeDef:
        name = free_name(f"{self._node.name}/{op}", self._taken)
        self._taken.add(name)
        node = NodeDef(name=name, op=op, input=inputs, device=self._node.device)
        if has_type:
            node.attr["T"].CopyFrom(self._type)
        self._made.append(node)
        return node

    def _too_few(self) -> InvalidArgumentError:
        node = self._node
        return InvalidArgumentError(
            f"Node '{node.name}' ({node.op}) has {len(node.input)} inputs, which are too few",
            node=node.name,
            op=node.op,
        )
