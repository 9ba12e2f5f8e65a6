"""Which gradient function an operation has."""

import importlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import opkernel
import opkernel.ops
from opkernel import Graph, Session, raw_ops
from opkernel.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from opkernel.gradients import (
    gradient_function_of,
    look_up_gradient,
    no_gradient,
    nodes,
    register_gradient,
    registry,
)
from opkernel.gradients.registry import gradient_sites
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.catalogue import rules
from opkernel.registrations import registered_by

FLOAT = opkernel.float32


@pytest.fixture(autouse=True)
def _no_traces():
    yield
    for registrations, name in registered_by(__name__.__eq__):
        registrations.remove(name)


def test_a_gradient_is_found_by_the_name_of_the_op():
    assert getattr(look_up_gradient("Pow"), "__name__", "") == "pow_gradient"
    assert look_up_gradient("OnesLike") is None
    with pytest.raises(NotFoundError, match="No gradient defined for op: Bitcast"):
        look_up_gradient("Bitcast")


def test_an_op_of_ones_own_has_the_gradient_that_is_registered():
    op = opkernel.register_op(
        "TripleForGradients", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
    )
    opkernel.register_kernel(op, device="CPU")(lambda x: x * np.float32(3))

    @opkernel.register_gradient(op)
    def gradient(op, grad):
        return nodes.Mul(grad, 3)

    with Graph().as_default() as graph:
        x = opkernel.constant([1.0, 2])
        (dx,) = opkernel.gradients(graph.create_op(op.name, [x]).outputs[0], x)
        np.testing.assert_array_equal(Session(graph).run(dx), [3, 3])


def test_a_module_may_register_its_gradient_again():
    first = register_gradient("GradientOfNobody")(lambda op, grad: 1)
    second = register_gradient("GradientOfNobody")(lambda op, grad: 2)
    assert look_up_gradient("GradientOfNobody") is second is not first
    no_gradient("GradientOfNobody")
    assert look_up_gradient("GradientOfNobody") is None


def test_gradients_of_others_are_not_replaced():
    with pytest.raises(AlreadyExistsError, match=r"Tanh .*'opkernel.ops.math\."):
        register_gradient("Tanh")(lambda op, grad: grad)


def test_a_node_may_ask_for_another_gradient():
    register_gradient("TwiceTheGradient")(lambda op, grad: nodes.Mul(grad, 2))
    with Graph().as_default() as graph:
        x = opkernel.constant([1.0, 2])
        with graph.gradient_override_map({"Identity": "TwiceTheGradient"}):
            y = raw_ops.Identity(input=x)
        z = raw_ops.Identity(input=y)
        assert y.op.get_attr("_gradient_op_type") == b"TwiceTheGradient"
        assert gradient_function_of(z.op) is look_up_gradient("Identity")
        np.testing.assert_array_equal(Session(graph).run(opkernel.gradients(z, x))[0], [2, 2])
        y.op.attr["_gradient_op_type"].s = b"Nobody"
        with pytest.raises(NotFoundError, match=r"'Identity' \(op type: Nobody\)"):
            opkernel.gradients(y, x)


def test_gradient_functions_give_a_gradient_for_each_input():
    register_gradient("OneTooMany")(lambda op, grad: [grad, grad])
    register_gradient("OtherShape")(lambda op, grad: nodes.Reshape(grad, [2, 1]))
    with Graph().as_default() as graph:
        x = opkernel.constant([1.0, 2])
        for name, message in (
            ("OneTooMany", "2 gradients for the 1 inputs of .*; it must give one for each"),
            ("OtherShape", "shape"),
        ):
            with graph.gradient_override_map({"Neg": name}):
                y = raw_ops.Neg(x=x)
            with pytest.raises(InvalidArgumentError, match=message):
                opkernel.gradients(y, x)


def test_gradient_functions_give_tensors():
    register_gradient("ANumber")(lambda op, grad: 1.0)
    with Graph().as_default() as graph:
        x = opkernel.constant([1.0, 2])
        with graph.gradient_override_map({"Neg": "ANumber"}):
            y = raw_ops.Neg(x=x)
        with pytest.raises(TypeError, match="gradient function of Neg gave a float"):
            opkernel.gradients(y, x)


def modules_of_ops():
    return [module.name for module in pkgutil.walk_packages(opkernel.ops.__path__, "opkernel.ops.")]


def test_gradients_of_the_catalogue_stand_where_they_are_looked_for():
    modules = set(modules_of_ops())
    for module in modules:
        importlib.import_module(module)
    owners = {op: site.owner for op, site in gradient_sites().items() if site.owner in modules}
    assert len(owners) > 250
    assert {op: f"opkernel.ops.{rules(op)['gradient']}" for op in owners} == owners


def test_ops_load_nothing_of_gradients_before_one_is_asked_for():
    modules = [
        module
        for module in modules_of_ops()
        if not module.endswith("gradients") and ".gradients." not in module
    ]
    imports = "\n".join([f"import {module}" for module in modules])
    loaded = "sorted(name for name in sys.modules if name.startswith('opkernel.gradients.'))"
    program = f"import sys\n{imports}\nprint(*{loaded})"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["opkernel.gradients.registry"]


@pytest.mark.parametrize("first", ["opkernel.gradients", "opkernel"])
def test_the_room_is_the_function_whatever_is_asked_for_first(first):
    program = (
        f"import {first}\nimport opkernel\nfunction = opkernel.gradients\n"
        "import opkernel.gradients as room\nfrom opkernel import gradients as again\n"
        "assert function is room is again\n"
        "with opkernel.Graph().as_default() as graph:\n"
        "    x = opkernel.constant(3.0)\n"
        "    print(*opkernel.Session(graph).run(function(x * x, x)))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "6.0\n"


def test_a_misspelt_name_is_told_when_the_gradient_is_asked_for():
    op = opkernel.register_op(
        "DoubleForGradients", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
    )
    register_gradient("DuobleForGradients")(lambda op, grad: grad)
    assert registry.gradients_of_no_op()["DuobleForGradients"].owner == __name__
    hint = "; one is registered for DuobleForGradients, which is no op"
    with pytest.raises(NotFoundError, match=f"No gradient defined for op: {op.name}{hint}"):
        look_up_gradient(op.name)
    with Graph().as_default() as graph:
        x = opkernel.constant(1.0)
        y = graph.create_op(op.name, [x], name="y").outputs[0]
        with pytest.raises(NotFoundError, match=rf"'y' \(op type: {op.name}\){hint}: register"):
            opkernel.gradients(y, x)


def test_a_gradient_may_come_before_its_op():
    register_gradient("OpThatComesLater")(lambda op, grad: grad)
    assert "OpThatComesLater" in registry.gradients_of_no_op()
    opkernel.register_op(
        "OpThatComesLater", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
    )
    assert "OpThatComesLater" not in registry.gradients_of_no_op()
