"""Wrong calls from Python: the error says what, where, which rule, and what to do; it prints no array."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Operation, Session, Tensor, TensorSpec, raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.types import object_scalar

BIG = np.arange(4000, dtype=np.float32).reshape(1000, 4)
OPS: Any = raw_ops
"""Without the stub, which would refuse the calls."""


@opkernel.function
def scaled(images: Any, factor: float = 2.0) -> Any:
    return images * factor


@opkernel.function(input_signature=[TensorSpec([None])])
def norm(x: Any) -> Any:
    return x


@dataclass
class Model:
    """A small model, and a session of it."""

    graph: Graph
    session: Session
    images: Tensor
    scores: Tensor

    def op(self, name: str) -> Operation:
        return self.graph.get_operation_by_name(name)


@pytest.fixture
def model() -> Model:
    graph = Graph()
    with graph.as_default():
        images = opkernel.placeholder(opkernel.float32, [None, 4], name="images")
        weights = opkernel.constant(np.ones((4, 2), np.float32), name="weights")
        scores = raw_ops.MatMul(a=images, b=weights, name="scores")
        raw_ops.Softmax(logits=scores, name="probabilities")
    return Model(graph, Session(graph), images, scores)


def reading(model: Model) -> tuple[Tensor, dict[Tensor, Any]]:
    """A tensor that reads a variable, and an array in the place of its handle."""
    with model.graph.as_default():
        handle = opkernel.placeholder(opkernel.resource, [], name="handle")
        read = raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)
    return read, {handle: BIG}


CALLS: dict[str, tuple[Callable[[Model], Any], type[Exception], str]] = {
    # Names.
    "opkernel.Sesion(graph)": (
        lambda m: getattr(opkernel, "Sesion")(m.graph),  # noqa: B009  # mypy refuses it otherwise
        AttributeError,
        "module 'opkernel' has no attribute 'Sesion'; perhaps you mean Session",
    ),
    "raw_ops.Matmul(a=a, b=b)": (
        lambda m: OPS.Matmul(a=BIG, b=BIG),
        AttributeError,
        "module 'opkernel.raw_ops' has no op 'Matmul'; perhaps you mean MatMul",
    ),
    "graph.create_op('Softmx', [scores])": (
        lambda m: m.graph.create_op("Softmx", [m.scores]),
        NotFoundError,
        "Op type not registered 'Softmx' .*; perhaps you mean Softmax.* import the module that",
    ),
    "raw_ops.MatMul(a=a, b=b, transpos_a=True)": (
        lambda m: OPS.MatMul(a=BIG, b=BIG, transpos_a=True),
        TypeError,
        r"MatMul\(\) .*transpos_a.*; perhaps you mean transpose_a",
    ),
    "raw_ops.Cast(x=x, DstT='flot32')": (
        lambda m: OPS.Cast(x=BIG, DstT="flot32"),
        InvalidArgumentError,
        "'flot32' is not the name of a DataType; perhaps you mean float32",
    ),
    "session.run('probabilites:0')": (
        lambda m: m.session.run("probabilites:0"),
        NotFoundError,
        "'probabilites:0' refers to a Tensor which does not exist.*; perhaps you mean probabilities",
    ),
    "session.run(scores, {'image:0': x})": (
        lambda m: m.session.run(m.scores, {"image:0": BIG}),
        NotFoundError,
        "'image', does not exist in the graph; perhaps you mean images",
    ),
    "session.run(scores, {'images': x})": (
        lambda m: m.session.run(m.scores, {"images": BIG}),
        InvalidArgumentError,
        "'images' refers to an Operation, not a Tensor.*; perhaps you mean images:0",
    ),
    "graph.get_operation_by_name('score')": (
        lambda m: m.op("score"),
        NotFoundError,
        "'score' refers to an Operation not in the graph; perhaps you mean scores",
    ),
    "scores.op.get_attr('transpose')": (
        lambda m: m.scores.op.get_attr("transpose"),
        InvalidArgumentError,
        "Operation 'scores' has no attr named 'transpose'; perhaps you mean transpose_",
    ),
    "graph.function_library.get_function('scaled')": (
        lambda m: scaled(m.images).graph.function_library.get_function("scaled"),
        NotFoundError,
        r"Function scaled is not defined; perhaps you mean scaled_\w{12}",
    ),
    # Arguments.
    "session.run({'images:0': x}, 'scores:0')": (
        lambda m: m.session.run({"images:0": BIG}, "scores:0"),  # type: ignore[arg-type]  # swapped
        TypeError,
        r"feed_dict must be a mapping .*, not 'scores:0': run\(fetches, feed_dict\) takes the fetches",
    ),
    "session.run({images: x}, scores)": (
        lambda m: m.session.run({m.images: BIG}, m.scores),  # type: ignore[arg-type]  # swapped
        TypeError,
        r"feed_dict must be a mapping .*, not .*'scores:0'.*: run\(fetches, feed_dict\) takes",
    ),
    "session.run(x)": (
        lambda m: m.session.run(BIG),
        TypeError,
        r"Fetch argument <ndarray float32\[1000,4\]> has invalid type ndarray, must be a Tensor",
    ),
    "session.run(scores, {images: x.T})": (
        lambda m: m.session.run(m.scores, {m.images: BIG.T}),
        InvalidArgumentError,
        r"Cannot feed value of shape \(4, 1000\) for Tensor 'images:0', which has shape \(\?, 4\)",
    ),
    "session.run(scores)": (
        lambda m: m.session.run(m.scores),
        InvalidArgumentError,
        r"You must feed a value for placeholder tensor 'images' with dtype float and shape \[\?,4\]",
    ),
    "session.make_callable(scores, {images: x})": (
        lambda m: m.session.make_callable(m.scores, {m.images: BIG}),  # type: ignore[arg-type]  # so
        TypeError,
        "the feeds must be a list or tuple of tensors or names, not {<opkernel.Tensor 'images:0'.*: the fetches stand before",
    ),
    "session.partial_run_setup({images: x}, scores)": (
        lambda m: m.session.partial_run_setup({m.images: BIG}, m.scores),  # type: ignore[arg-type]  # so
        TypeError,
        "the feeds must be a list or tuple of tensors or names, not <opkernel.Tensor 'scores:0'.*: the fetches stand before",
    ),
    "scaled(image=x)": (
        lambda m: scaled(image=BIG),  # type: ignore[call-arg]  # so it is
        TypeError,
        r"scaled\(\) got an unexpected .*'image'; perhaps you mean images; it takes \(images, factor=2.0\) and was given \(image=<",
    ),
    "norm(x), of an input signature": (
        lambda m: norm(BIG),
        TypeError,
        r"norm\(\) argument 'x' is float32\[1000,4\]; the input signature asks for float32\[\?\]",
    ),
    "scores + list": (
        lambda m: m.scores + ["a"] * 1000,
        InvalidArgumentError,
        r"Input 'y' of 'add' expected float, got \['a', 'a', 'a', 'a', \.\.\.\] of type 'list'",
    ),
    "scores[array]": (
        lambda m: m.scores[BIG],
        TypeError,
        r"Only integers, slices .* got <ndarray float32\[1000,4\]>; opkernel.raw_ops.GatherV2 takes",
    ),
    "raw_ops.MatMul(a=a, b=b, transpose_a=array)": (
        lambda m: OPS.MatMul(a=BIG, b=BIG, transpose_a=BIG),
        InvalidArgumentError,
        r"<ndarray float32\[1000,4\]> is not a value for an attr of type bool",
    ),
    "raw_ops.Placeholder(dtype=float32, shape=array)": (
        lambda m: OPS.Placeholder(dtype=opkernel.float32, shape=BIG),
        InvalidArgumentError,
        r"<ndarray float32\[1000,4\]> is not a value for an attr of type shape",
    ),
    "TensorSpec(float32, [None])": (
        lambda m: TensorSpec(opkernel.float32, [None]),
        TypeError,
        "takes the shape first, then the type: opkernel.float32 is no shape",
    ),
    "opkernel.cond(array, f, g)": (
        lambda m: opkernel.cond(BIG, lambda: 1, lambda: 2),
        ValueError,
        r"the predicate of 'cond' must be a scalar, not <ndarray float32\[1000,4\]>",
    ),
    "opkernel.while_loop, whose body returns more": (
        lambda m: opkernel.while_loop(lambda x: True, lambda x: (x, x), [BIG]),
        TypeError,
        r"it takes \[<ndarray float32\[1000,4\]>\] and returned \(<ndarray ",
    ),
    "opkernel.import_graph_def(path)": (
        lambda m: opkernel.import_graph_def("model.pb"),  # type: ignore[arg-type]  # so it is
        TypeError,
        "graph_def must be a GraphDef, not 'model.pb'; opkernel.load_graph reads files",
    ),
    "raw_ops.ReadVariableOp(resource='weights')": (
        lambda m: OPS.ReadVariableOp(resource="weights", dtype=opkernel.float32),
        InvalidArgumentError,
        "ReadVariableOp: cannot convert 'resource' to a resource tensor: .* not 'weights'",
    ),
    "raw_ops.QueueSizeV2(handle=array of objects)": (
        lambda m: OPS.QueueSizeV2(handle=object_scalar(3)),
        InvalidArgumentError,
        "QueueSizeV2: cannot convert 'handle' to a resource tensor: .* not 3",
    ),
    "session.run(read, {handle: x})": (
        lambda m: m.session.run(*reading(m)),
        InvalidArgumentError,
        "Cannot feed ndarray for Tensor 'handle:0' of type resource: .* ResourceHandles, not 0.0",
    ),
    "if scores:": (
        lambda m: bool(m.scores),
        TypeError,
        "'scores:0' is a symbolic tensor and cannot be used as a Python bool.*opkernel.cond",
    ),
    "scores.eval()": (
        lambda m: m.scores.eval(),
        FailedPreconditionError,
        r"no default session for this graph. Use `with Session\(graph\)`",
    ),
    "opkernel.convert_variables_to_constants(session, ['score'])": (
        lambda m: opkernel.convert_variables_to_constants(m.session, ["score"]),
        NotFoundError,
        "'score' refers to an Operation not in the graph; perhaps you mean scores",
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_call_is_told(call: str, model: Model) -> None:
    make, error, message = CALLS[call]
    with pytest.raises(error) as caught:
        make(model)
    text = str(caught.value)
    assert re.search(message, text), text
    assert len(text) < 400
    assert "3.99" not in text  # an element of the array
    assert "array([" not in text


def test_no_op_prints_the_array_that_it_refuses() -> None:
    refused = 0
    for name in MODULE_OF_OP:
        parameters = inspect.signature(getattr(raw_ops, name)).parameters
        with Graph().as_default():
            try:
                getattr(raw_ops, name)(**{one: BIG for one in parameters if one != "name"})
            except (opkernel.errors.OpError, TypeError) as error:
                refused += 1
                # Shape functions tell the values that they know, as TensorFlow's do.
                text, _, _ = str(error).partition(" and with computed input tensors")
                assert "array(" not in text
                assert "3.99" not in text
                assert len(text) < 1000  # most of it the declaration of the op
    assert refused > 500
