"""A node whose attr `_gradient_op_type` names another op has the gradient of that op.

TensorFlow looks gradient functions up by the value of this attr, which its `gradient_override_map` sets.
"""

import ast
from pathlib import Path

import pytest

import opkernel
from opkernel import Graph, raw_ops
from opkernel.proto import AttrValue

OPS = Path(opkernel.__file__).parent / "ops"
ACTIVATIONS = ("Relu", "Relu6", "Elu", "Selu")
READ_THE_OP = {
    "array/matrix_diag.py": "the third version alone has the attr `align`",
    "linalg/gradients.py": "a message names it",
    "math/gradients/products.py": "the op of the gradient, which may be sparse",
    "sparse/merge.py": "a message names it",
    "tensor_array/creation.py": "an array of gradients has the version of its array",
}
"""The modules that read the type of a node, and why."""


@pytest.mark.parametrize("named", ACTIVATIONS)
@pytest.mark.parametrize("op", ACTIVATIONS)
def test_the_gradient_is_that_of_the_op_that_the_node_names(op: str, named: str) -> None:
    with Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [2])
        y = getattr(raw_ops, op)(features=x)
        y.op._set_attr("_gradient_op_type", AttrValue(s=named.encode()))
        (gradient,) = opkernel.gradients(y, [x])
    assert gradient.op.type == f"{named}Grad"
    assert graph.get_operations()[-1].inputs[1] is y


def test_gradient_functions_do_not_read_the_type_of_the_node() -> None:
    found = {
        str(path.relative_to(OPS))
        for path in OPS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("op.type")
    }
    assert found == READ_THE_OP.keys()
