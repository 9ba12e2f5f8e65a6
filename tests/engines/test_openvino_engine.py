"""OpenVINO as an engine: what it takes, and how what it compiled is run."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from tests.engines.clusters import arguments_for, body_of

import opkernel
from opkernel import raw_ops
from opkernel.engines.openvino import OpenVinoEngine
from opkernel.engines.openvino.op_rule import rules
from opkernel.engines.openvino.tensors import ints
from opkernel.errors import InternalError, InvalidArgumentError, UnimplementedError
from opkernel.records import replace
from opkernel.runtime.engines.engine import ClusterArgument, MeasuringCluster, engine_named

pytest.importorskip("openvino")

ENGINE = OpenVinoEngine()


def function(make, *dtypes):
    """The function that `make` builds of raw ops: from its arguments to one tensor or several."""
    graph = opkernel.Graph()
    with graph.as_default():
        args = [
            graph.create_op("_Arg", name=f"arg{i}", attrs={"T": dtype, "index": i})
            for i, dtype in enumerate(dtypes)
        ]
        made = make(*(arg.outputs[0] for arg in args))
        return body_of(graph, args, made if isinstance(made, list | tuple) else [made])


def run(make, *values):
    """The results of a function, compiled for the types and shapes of values, for these."""
    arrays = [np.asarray(value) for value in values]
    body = function(make, *(one.dtype for one in arrays))
    return ENGINE.compile(body, arguments_for(ENGINE, body, arrays)).run(values)[0]


def refusal(make, *dtypes):
    return ENGINE.refusal(function(make, *dtypes).outputs[0].op)


X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def test_the_engine_is_found_by_its_name():
    assert isinstance(engine_named("openvino"), OpenVinoEngine)


def test_it_imports_openvino_when_something_is_compiled():
    code = (
        "import sys; from opkernel.runtime.engines.engine import engine_named\n"
        "engine_named('openvino').check_installed()\n"
        "assert not any(name.partition('.')[0] == 'openvino' for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_where_openvino_is_missing_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnimplementedError, match=r"opkernel\[openvino\]"):
        ENGINE.check_installed()


def test_integers_and_doubles_stay_outside():
    for dtype in (np.int32, np.int64, np.uint8, np.float64, np.float16):
        assert refusal(lambda x: raw_ops.AddV2(x=x, y=x), dtype)
        assert refusal(lambda x: raw_ops.Identity(input=x), dtype)
    assert refusal(lambda x: raw_ops.Shape(input=x), np.float32)
    assert refusal(lambda x: raw_ops.Cast(x=x, DstT=np.int32), np.float32)
    assert refusal(lambda x: raw_ops.Cast(x=x, DstT=np.float32), np.int32)
    assert refusal(lambda x: raw_ops.UniqueV2(x=x, axis=[0])[0], np.float32)


def test_integers_enter_as_indices_and_as_constants():
    assert not refusal(
        lambda x, i: raw_ops.GatherV2(params=x, indices=i, axis=0), np.float32, np.int64
    )
    assert not refusal(lambda x, s: raw_ops.Reshape(tensor=x, shape=s), np.float32, np.int32)
    found = run(
        lambda x, i: raw_ops.GatherV2(params=x, indices=i, axis=1), X, np.array([2, 0], np.int64)
    )
    np.testing.assert_array_equal(found[0], X[:, [2, 0]])


def test_what_must_be_known_is_asked_for():
    def make(x, shape, perm):
        return raw_ops.Transpose(x=raw_ops.Reshape(tensor=x, shape=shape), perm=perm)

    body = function(make, np.float32, np.int32, np.int32)
    assert ENGINE.compile_time_constants(body) == {1, 2}
    (found,) = run(make, X, np.array([2, -1], np.int32), np.array([1, 0], np.int32))
    np.testing.assert_array_equal(found, X.reshape(2, 6).T)
    parameter = [ClusterArgument.parameter(opkernel.float32, (3, 4))]
    parameter += [ClusterArgument.parameter(opkernel.int32, (2,))] * 2
    with pytest.raises(InvalidArgumentError, match="must be a compile-time constant"):
        ENGINE.compile(body, parameter)


def test_padding_with_a_value_that_is_computed_stays_outside():
    """OpenVINO would pad with 0."""

    def make(x, y):
        value = raw_ops.Neg(x=y)
        return raw_ops.PadV2(input=x, paddings=[[1, 0]], constant_values=value)

    assert refusal(make, np.float32, np.float32)


def test_marked_ops_are_refused_where_results_must_not_depend_on_the_engine(monkeypatch):
    assert not refusal(lambda x: raw_ops.Relu(features=x), np.float32)
    monkeypatch.setenv("OPKERNEL_DETERMINISTIC", "1")
    assert "NaN" in refusal(lambda x: raw_ops.Relu(features=x), np.float32)
    assert not refusal(lambda x: raw_ops.Tanh(x=x), np.float32)


def test_results_that_nothing_computes_and_results_that_come_twice():
    """Each is an array that the caller alone has."""

    def make(x):
        doubled = raw_ops.Mul(x=x, y=np.float32(2))
        number = raw_ops.Const(value=np.array([1, 2], np.int64), dtype=opkernel.int64)
        zeros = raw_ops.ZerosLike(x=x)
        return [doubled, x, raw_ops.Identity(input=x), doubled, number, zeros]

    body = function(make, np.float32)
    compiled = ENGINE.compile(body, [ClusterArgument.parameter(opkernel.float32, (3, 4))])
    for _ in range(2):
        found, updates = compiled.run([X])
        wanted = [2 * X, X, X, 2 * X, np.array([1, 2]), np.zeros((3, 4), np.float32)]
        for got, want in zip(found, wanted, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
            got[...] = 7
        assert updates == []
    assert not any(np.shares_memory(a, b) for a in found for b in found if a is not b)


def test_scalars_and_a_cluster_without_arguments():
    assert run(lambda x: raw_ops.Exp(x=x), np.float32(0))[0].shape == ()
    (found,) = run(lambda: raw_ops.Neg(x=np.float32(3)))
    assert found == -3


@pytest.mark.parametrize(
    ("make", "shapes", "wanted"),
    [
        (lambda x: raw_ops.Relu(features=x), [(0, 3)], np.empty((0, 3))),
        (lambda x: raw_ops.Sum(input=x, axis=[0]), [(0, 3)], np.zeros(3)),
        (lambda x: raw_ops.Prod(input=x, axis=[0]), [(0, 3)], np.ones(3)),
        (lambda x: raw_ops.Max(input=x, axis=[0]), [(0, 3)], np.full(3, -np.inf)),
        (lambda x: raw_ops.Min(input=x, axis=[0]), [(0, 3)], np.full(3, np.inf)),
        (lambda x: raw_ops.Mean(input=x, axis=[0]), [(0, 3)], np.full(3, np.nan)),
        (lambda a, b: raw_ops.MatMul(a=a, b=b), [(2, 0), (0, 3)], np.zeros((2, 3))),
        (lambda a, b: raw_ops.Einsum(inputs=[a, b], equation="ij,jk->ik"), [(2, 0), (0, 3)], np.zeros((2, 3))),
        (lambda a, b: raw_ops.ConcatV2(values=[a, b], axis=0), [(0, 2), (1, 2)], np.ones((1, 2))),
        (lambda x: raw_ops.Pad(input=x, paddings=[[1, 1], [0, 0]]), [(0, 2)], np.zeros((2, 2))),
        (lambda x: raw_ops.SplitV(value=x, size_splits=[0, 2], axis=0, num_split=2)[0], [(2, 1)], np.empty((0, 1))),
    ],
)  # fmt: skip
def test_tensors_without_elements(make, shapes, wanted):
    (found,) = run(make, *(np.ones(shape, np.float32) for shape in shapes))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("size", [4, 300], ids=["copied", "lent"])
def test_inputs_of_all_kinds_of_memory(size):
    """Strided, read-only and unaligned ones; none is written to, and none is kept."""
    x = np.random.default_rng(0).standard_normal((size, size), np.float32)
    frozen = x.copy()
    frozen.flags.writeable = False
    unaligned = np.empty(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
    unaligned[...] = x
    kinds = [x, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2], frozen, unaligned]
    body = function(lambda x: raw_ops.Relu(features=raw_ops.Neg(x=x)), np.float32)
    compiled = ENGINE.compile(body, [ClusterArgument.parameter(opkernel.float32, x.shape)])
    results = [compiled.run([one])[0][0] for one in kinds * 20]
    for given, found in zip(kinds * 20, results, strict=True):
        np.testing.assert_array_equal(found, np.maximum(-x, 0))
        np.testing.assert_array_equal(given, x)
    count = sys.getrefcount(x)
    compiled.run([x])
    assert sys.getrefcount(x) == count


@pytest.mark.parametrize("size", [8, 256], ids=["copied", "lent"])
def test_threads_share_a_compiled_cluster(size):
    def make(x, y):
        product = raw_ops.MatMul(a=x, b=y)
        return [
            product,
            raw_ops.Tanh(x=raw_ops.BiasAdd(value=product, bias=np.ones(size, np.float32))),
        ]

    body = function(make, np.float32, np.float32)
    argument = ClusterArgument.parameter(opkernel.float32, (size, size))
    compiled = ENGINE.compile(body, [argument, argument])
    eye = np.eye(size, dtype=np.float32)
    start, failures = threading.Barrier(16), []

    def work(number):
        start.wait()
        x = np.full((size, size), number / 16, np.float32, order="F")  # to be copied
        kept = [compiled.run([x, eye])[0] for _ in range(10)]
        for product, result in kept:
            if not (np.array_equal(product, x) and np.allclose(result, np.tanh(x + 1), atol=1e-6)):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_an_argument_of_another_shape_is_refused():
    body = function(lambda x: raw_ops.Exp(x=x), np.float32)
    compiled = ENGINE.compile(body, [ClusterArgument.parameter(opkernel.float32, (2,))])
    for wrong in (np.ones(3, np.float32), np.ones(2), np.ones((), np.float32)):
        with pytest.raises(InvalidArgumentError, match="Argument 0 of a compiled function"):
            compiled.run([wrong])


def test_what_tensorflow_refuses_is_refused_with_the_node():
    with pytest.raises(InvalidArgumentError, match=r"Dimensions must be equal.*node MatMul"):
        run(lambda a, b: raw_ops.MatMul(a=a, b=b), X, X)


def test_what_openvino_refuses_names_the_node(monkeypatch):
    def build(x):
        from openvino import opset15

        return opset15.reshape(x, ints([5]), False)

    known, wrong = rules().get, replace(rules()["Exp"], build=build)
    monkeypatch.setattr(rules(), "get", lambda op: wrong if op == "Exp" else known(op))
    with pytest.raises(InternalError, match=r"OpenVINO.*node 'Exp'"):
        run(lambda x: raw_ops.Exp(x=x), X)


def test_the_layout_of_images_is_kept_around_what_is_element_wise():
    """Axes that are turned for convolutions are turned back for what is no image any more."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 5, 6, 3), np.float32)
    kernel = rng.standard_normal((1, 1, 3, 4), np.float32)

    def make(x):
        y = raw_ops.Conv2D(input=x, filter=kernel, strides=[1, 1, 1, 1], padding="VALID")
        z = raw_ops.Mul(x=y, y=np.arange(4, dtype=np.float32))
        padded = raw_ops.Pad(input=z, paddings=[[0, 0], [1, 0], [0, 2], [3, 0]])
        both = raw_ops.ConcatV2(values=[y, z, x], axis=3)
        return [
            z,
            padded,
            both,
            raw_ops.ConcatV2(values=[y, z], axis=2),
            raw_ops.Sum(input=z, axis=[1, 3]),
            raw_ops.Sum(input=z, axis=[2], keep_dims=True),
            raw_ops.AddV2(x=z, y=rng_rows),
            raw_ops.Reshape(tensor=z, shape=[-1]),
        ]

    rng_rows = np.arange(6 * 4, dtype=np.float32).reshape(6, 4)
    y = x @ kernel[0, 0]
    z = y * np.arange(4, dtype=np.float32)
    wanted = [
        z,
        np.pad(z, [[0, 0], [1, 0], [0, 2], [3, 0]]),
        np.concatenate([y, z, x], 3),
        np.concatenate([y, z], 2),
        z.sum((1, 3)),
        z.sum(2, keepdims=True),
        z + rng_rows,
        z.reshape(-1),
    ]
    for got, want in zip(run(make, x), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_nothing_is_told_over_the_network():
    """OpenVINO's package reports its import to its makers, from a process that it forks."""
    code = """
import sys
noted = []
sys.addaudithook(lambda event, _: noted.append(event))
import numpy as np, opkernel
from opkernel import raw_ops
with opkernel.Graph().as_default() as graph:
    x = opkernel.placeholder(opkernel.float32, [4], name="x")
    y = raw_ops.Tanh(x=raw_ops.Exp(x=raw_ops.Neg(x=x * 2.0)))
with opkernel.Session(graph, jit="openvino!") as session:
    session.run(y, {x: np.ones(4)})
assert "openvino" in sys.modules
forbidden = {"os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen", "socket.connect"}
print(sorted(forbidden.intersection(noted)), "openvino_telemetry" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] False\n"


def test_counters_name_the_operations_of_the_cluster():
    generator = np.random.default_rng(0)
    weights = generator.standard_normal((256, 256)).astype(np.float32)
    body = function(
        lambda x: raw_ops.Softmax(
            logits=raw_ops.Relu(
                features=raw_ops.MatMul(a=x, b=weights, name="product"), name="relu"
            ),
            name="shares",
        ),
        opkernel.float32,
    )
    x = generator.standard_normal((64, 256)).astype(np.float32)
    program = ENGINE.compile(body, arguments_for(ENGINE, body, [x]))
    assert isinstance(program, MeasuringCluster)
    program.prepare_to_measure()
    results, updates, times = program.run_measured([x])
    np.testing.assert_array_equal(results[0], program.run([x])[0][0])
    assert not updates
    assert {one.name for one in times} <= {"product", "relu", "shares"}
    assert sum(one.seconds for one in times) > 0
