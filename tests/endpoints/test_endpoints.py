"""Endpoints against TensorFlow: recorded results and errors of calls, eager and traced; signatures; gradients."""

import ast
import inspect
import json
import lzma
import pickle

import numpy as np
import pytest
from tests.endpoints import samples

import opkernel
from opkernel.endpoints.table import table
from opkernel.errors import OpError

RECORD = json.loads(lzma.decompress(samples.RECORDED.read_bytes()))
CALLS = RECORD["calls"]
MODULES = [*samples.MODULES, "array"]

NAMES = {name: getattr(opkernel, name) for name in [*MODULES, "losses", *samples.TYPES]}
NAMES |= {
    "SparseTensor": opkernel.sparse.SparseTensor,
    "RaggedTensor": opkernel.ragged.RaggedTensor,
}
NAMES["IndexedSlices"] = lambda *parts: opkernel.IndexedSlicesValue(
    *map(opkernel.convert_to_tensor, parts), *[None] * (3 - len(parts))
)
NAMES |= {"inf": float("inf"), "nan": float("nan")}

ALIKE = {"InvalidArgumentError", "ValueError", "TypeError", "AssertionError", "OutOfRangeError"}
"""Errors that TensorFlow raises for one mistake, by where it notices it."""

LOOSE = {
    "linalg.logm": 2e-3,
    "linalg.sqrtm": 1e-4,
    "linalg.expm": 1e-4,
    "signal.": 2e-4,
    "image.": 2e-4,
}


def assert_like(found, wanted, tolerance=2e-5):
    assert found.keys() == wanted.keys()
    for kind in ("list", "sparse", "ragged"):
        if kind in wanted:
            assert len(found[kind]) == len(wanted[kind])
            for one, other in zip(found[kind], wanted[kind], strict=True):
                assert_like(one, other, tolerance)
            return
    if "dict" in wanted:
        assert found["dict"].keys() == wanted["dict"].keys()
        for key, value in wanted["dict"].items():
            assert_like(found["dict"][key], value, tolerance)
        return
    if "python" in wanted:
        assert found == wanted
        return
    assert (found["dtype"], found["shape"]) == (wanted["dtype"], wanted["shape"])
    if wanted["dtype"].startswith(("float", "complex", "bfloat")):
        if "16" in wanted["dtype"]:
            tolerance = 1e-2
        np.testing.assert_allclose(found["items"], wanted["items"], rtol=tolerance, atol=tolerance)
    else:
        assert found["items"] == wanted["items"]


def tolerance_of(call):
    return next((t for begin, t in LOOSE.items() if call.startswith(begin)), 2e-5)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_gives_what_tensorflow_gives(call):
    wanted = CALLS[call]
    opkernel.random.set_seed(11)
    if "error" not in wanted:
        found = samples.written(eval(call, NAMES | samples.ARRAYS))
        assert_like(found, wanted, tolerance_of(call))
        return
    with pytest.raises((OpError, ValueError, TypeError)) as caught:
        eval(call, NAMES | samples.ARRAYS)
    name = type(caught.value).__name__
    assert name == wanted["error"] or {name, wanted["error"]} <= ALIKE


def is_traceable(call):
    """Calls with arrays that a function can take, and results that a function can give."""
    wanted = CALLS[call]
    used = {node.id for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)}
    is_random = (
        call.startswith(("random.", "image.random", "nn.dropout")) and "stateless" not in call
    )
    return (
        "error" not in wanted
        and "python" not in wanted
        and not is_random
        and "IndexedSlices" not in call  # of which the parts come in another order
        and used & samples.ARRAYS.keys()
    )


@pytest.mark.parametrize("call", [call for call in CALLS if is_traceable(call)])
def test_a_traced_call_gives_the_same(call):
    used = {node.id for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)}
    names = sorted(used & samples.ARRAYS.keys())

    def function(*arguments):
        return flat(eval(call, NAMES | dict(zip(names, arguments, strict=True))))

    traced = opkernel.function(function)
    found = traced(*[samples.ARRAYS[name] for name in names])
    wanted = leaves(CALLS[call])
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert_like(samples.written(one), other, tolerance_of(call))


def flat(value):
    """The tensors of a result."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in flat(value[key])]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def leaves(written):
    for kind in ("list", "sparse", "ragged"):
        if kind in written:
            return [leaf for item in written[kind] for leaf in leaves(item)]
    if "dict" in written:
        return [leaf for item in written["dict"].values() for leaf in leaves(item)]
    return [written]


ENDPOINTS = [
    f"{module}.{name}" for module in MODULES for name in getattr(opkernel, module).__all__ if hasattr(getattr(opkernel, module), name)
    if not inspect.isclass(getattr(getattr(opkernel, module), name))
]  # fmt: skip


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_function_has_tensorflows_signature(path):
    module, _, name = path.rpartition(".")
    assert parameters(getattr(getattr(opkernel, module), name)) == RECORD["signatures"][path]


def parameters(function):
    parts = []
    for p in inspect.signature(function).parameters.values():
        default = p.default
        if isinstance(default, opkernel.DataType):
            default = default.tf_name
        elif inspect.isfunction(default):
            default = "function"
        star = "*" * ((p.kind is p.VAR_POSITIONAL) + 2 * (p.kind is p.VAR_KEYWORD))
        parts.append(f"{star}{p.name}" + ("" if p.default is p.empty else f"={default!r}"))
    return ", ".join(parts)


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_function_says_what_it_does(path):
    module, _, name = path.rpartition(".")
    function = getattr(getattr(opkernel, module), name)
    assert function.__doc__
    assert function.__doc__.strip()


def test_functions_of_tf_are_names_of_the_package():
    second = [row for row in table() if not row.module]
    assert second
    for row in second:
        module, _, name = row.target.rpartition(".")
        if name == row.name:
            assert getattr(opkernel, name) is getattr(getattr(opkernel, module), name)
    for name in set(dir(opkernel.array)) - {"constant"}:
        if name.startswith("__"):
            continue
        assert getattr(opkernel, name) is getattr(opkernel.array, name)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: eval("nn.relu()", NAMES), TypeError, r"relu\(\) missing 1 required positional argument: 'features'"),
        (lambda: eval("nn.relu([1.0], axis=1)", NAMES), TypeError, r"relu\(\) .*'axis'"),
        (lambda: opkernel.add(np.int32(1), np.float32(1)), OpError, "int32"),
        (lambda: opkernel.zeros([None]), OpError, "known sizes"),
        (lambda: opkernel.image.resize(np.zeros((2, 2, 3)), [2, 2], "x"), ValueError, "bilinear, nearest"),
        (lambda: opkernel.sparse.reorder([1]), TypeError, "A SparseTensor is wanted"),
        (lambda: eval("nn.relux", NAMES), AttributeError, "perhaps you mean .*relu"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "name", ["nn.relu", "math.mod", "math.reduce_sum", "linalg.l2_normalize", "cast"]
)
def test_a_function_can_be_pickled(name):
    function = eval(f"opkernel.{name}")
    assert pickle.loads(pickle.dumps(function)) is function


def test_numbers_of_python_divide_as_in_python():
    assert opkernel.divide(7, 2) == 3.5
    assert opkernel.array.broadcast_static_shape((3, 1), (4,)) == (3, 4)
    with pytest.raises(ValueError, match="broadcasting"):
        opkernel.array.broadcast_static_shape((3,), (4,))


def test_a_name_is_that_of_the_node_or_of_the_scope():
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [None, 3])
        assert opkernel.nn.relu(x, name="r").name == "r:0"
        assert opkernel.reduce_sum(x, axis=-1, name="s").name.startswith("s/")
        opkernel.math.softmax(x)
    assert {op.name.split("/")[0] for op in graph.get_operations()} >= {"r", "s", "softmax"}


def test_shapes_that_are_not_known_are_computed():
    @opkernel.function(input_signature=[opkernel.TensorSpec(None, opkernel.float32)])
    def unknown(x):
        return opkernel.reduce_sum(x), opkernel.transpose(x), opkernel.linalg.matrix_transpose(x)

    @opkernel.function(input_signature=[opkernel.TensorSpec([None, None], opkernel.float32)])
    def sizes(x):
        return (
            opkernel.repeat(x, 2, axis=1), opkernel.zeros_like(x, opkernel.int32),
            opkernel.nn.softmax(x, axis=0), opkernel.boolean_mask(x, opkernel.greater(x, 0.0)),
            opkernel.strings.format("{}", opkernel.shape(x)), opkernel.sparse.from_dense(x).indices,
        )  # fmt: skip

    x = np.array([[1.0, -2.0], [0.5, 3.0], [-1.0, 0.0]], np.float32)
    total, turned, again = unknown(x)
    assert total == x.sum()
    assert (turned == x.T).all()
    assert (again == x.T).all()
    twice, zeros, soft, positive, text, places = sizes(x)
    assert (twice == np.repeat(x, 2, axis=1)).all()
    assert zeros.dtype == np.int32
    np.testing.assert_allclose(soft.sum(axis=0), [1, 1], rtol=1e-6)
    assert positive.tolist() == [1, 0.5, 3]
    assert text == b"[3 2]"
    assert places.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]]


def test_rows_of_slices_are_masked_in_graphs():
    with opkernel.Graph().as_default() as graph:
        values = opkernel.placeholder(opkernel.float32, [3, 2])
        slices = opkernel.IndexedSlices(values, opkernel.constant([3, 1, 3]))
        found = opkernel.sparse.mask(slices, [1])
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    rows, indices = opkernel.Session(graph).run([found.values, found.indices], {values: x})
    assert (rows.tolist(), indices.tolist()) == ([[0, 1], [4, 5]], [3, 3])
    assert isinstance(found, opkernel.IndexedSlices)


def test_windows_with_gaps_in_images_of_unknown_size():
    @opkernel.function(
        input_signature=[opkernel.TensorSpec([None, None, None, 3], opkernel.float32)]
    )
    def pooled(x):
        return opkernel.nn.pool(x, [2, 2], "MAX", dilations=[2, 3])

    assert (
        pooled(samples.ARRAYS["im"])
        == opkernel.nn.pool(samples.ARRAYS["im"], [2, 2], "MAX", dilations=[2, 3])
    ).all()


def test_eigenvectors_of_a_complex_tridiagonal_matrix():
    alpha, beta = np.array([1, 2, 3], np.complex128), np.array([1 + 2j, 3 - 1j])
    values, vectors = opkernel.linalg.eigh_tridiagonal(alpha, beta, eigvals_only=False)
    matrix = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta.conj(), -1)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        "nn.conv1d(x1, f1, 1, 'SAME')", "nn.depthwise_conv2d(im, dw, [1, 1, 1, 1], 'SAME', dilations=[2, 2])",
        "nn.batch_normalization(lo[:, :4], v, q, p, v, 1e-3)", "nn.gelu(v)", "math.reduce_logsumexp(a, axis=1)",
        "nn.sigmoid_cross_entropy_with_logits(p, v)", "losses.huber(m, m * 3.0)", "linalg.norm(m)",
        "linalg.expm(sq)", "image.resize(im, [4, 4], 'bicubic')", "signal.dct(m)", "array.linspace(v, p, 3)",
        "linalg.tensordot(a, a, [[0, 1], [0, 1]])", "nn.pool(im, [2, 2], 'AVG', dilations=[2, 2])",
        "linalg.eigh_tridiagonal(v, q[:3])", "sparse.sampled_addmm([[0, 0], [1, 3]], p[:2], [2, 4], m * 1.0, n, output_type=float64)[1]", "nn.moments(m, [0])[1]", "image.ssim(im, im * 0.5, 1.0, filter_size=3)",
    ],
)  # fmt: skip
def test_gradients_pass_through(call):
    used = sorted(
        {n.id for n in ast.walk(ast.parse(call)) if isinstance(n, ast.Name)} & samples.ARRAYS.keys()
    )
    values = [opkernel.Variable(samples.ARRAYS[name].astype(np.float64)) for name in used]
    weights = None

    def total(*arguments):
        nonlocal weights
        found = eval(call, NAMES | dict(zip(used, arguments, strict=True)))
        return opkernel.reduce_sum(found * weights)

    found = eval(
        call, NAMES | {name: value.numpy() for name, value in zip(used, values, strict=True)}
    )
    weights = np.random.default_rng(1).normal(size=np.shape(found)).astype(found.dtype)
    _, grads = opkernel.value_and_grad(lambda: total(*[v.value for v in values]), values)()
    size, tolerance = (1e-6, 2e-3) if found.dtype == np.float64 else (1e-2, 3e-2)
    step = np.random.default_rng(2).normal(size=np.shape(values[0])) * size
    base = [value.numpy() for value in values]
    ends = [total(base[0] + sign * step, *base[1:]) for sign in (1, -1)]
    np.testing.assert_allclose(
        np.sum(grads[0] * step) * 2, ends[0] - ends[1], rtol=tolerance, atol=size**2
    )


def test_the_table_names_no_function_twice():
    names = [(row.module, row.name) for row in table()]
    assert len(names) == len({*names})
