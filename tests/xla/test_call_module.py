"""XlaCallModule: StableHLO modules that JAX wrote; expected values are TensorFlow's, or formulas.

`tests/data/make_jax_modules.py` writes the modules, and the SavedModel with TensorFlow's values.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)

pytestmark = pytest.mark.jax

DATA = Path(__file__).parents[1] / "data"
MODEL = DATA / "saved_models" / "jax"
FLOAT = np.float32
X = np.array([[1, 2, 3], [0.5, -1, 0]], FLOAT)
Y = [[0.9051482081413269, 0.9780261516571045], [0.24491865932941437, -0.5545997023582458]]
GRADIENTS: list[Any] = [
    [
        [0.5573599338531494, -0.2989959716796875],
        [0.1938110888004303, 0.9380700588226318],
        [0.9813982248306274, 0.25505852699279785],
    ],
    [0.7875871062278748, -0.6830114722251892],
]
LEFT, RIGHT = np.arange(15, dtype=FLOAT).reshape(3, 5), np.ones((5, 2), FLOAT)


def module(name: str) -> bytes:
    return (DATA / "modules" / f"{name}.mlirbc").read_bytes()


def called(artifact: bytes | str, args: list[Any], count: int = 1, **attrs: Any) -> list[Any]:
    attrs = {"Tout": [FLOAT] * count, "version": 10, "platforms": ["CPU"], **attrs}
    attrs.setdefault("Sout", [None] * len(attrs["Tout"]))
    data = artifact if isinstance(artifact, bytes) else artifact.encode()
    return [np.asarray(one) for one in raw_ops.XlaCallModule(args=args, module=data, **attrs)]


def of_main(types: str, *lines: str) -> str:
    """A module as text whose `main` has arguments %0, %1, ... and some lines."""
    return f"module {{ func.func @main{types} {{ {' ; '.join(lines)} }} }}".replace(" ; ", "\n")


SAME = "(%0: tensor<3x5xf32>) -> tensor<3x5xf32>"


class TestArtifacts:
    def test_sizes_are_those_of_the_call(self) -> None:
        for rows in (3, 1):
            product, sums, numbers = called(module("two_sizes"), [LEFT[:rows], RIGHT], 3)
            np.testing.assert_allclose(product, LEFT[:rows] @ RIGHT)
            np.testing.assert_allclose(sums, LEFT[:rows].sum(0))
            np.testing.assert_array_equal(numbers, LEFT[:rows].reshape(-1))

    def test_text(self) -> None:
        assert np.array_equal(called(of_main(SAME, "return %0 : tensor<3x5xf32>"), [LEFT])[0], LEFT)

    def test_one_of_several_platforms(self) -> None:
        platforms = ["TPU", "CPU"]
        text = of_main(
            "(%0: tensor<i32>, %1: tensor<f32>) -> tensor<f32>",
            "%2 = stablehlo.convert %0 : (tensor<i32>) -> tensor<f32>",
            "%3 = stablehlo.add %1, %2 : tensor<f32>",
            "return %3 : tensor<f32>",
        )
        assert called(text, [FLOAT(4)], platforms=platforms)[0] == 5
        three = called(
            module("three_platforms"), [X[0]], platforms=["CPU", "CUDA", "TPU"], version=9
        )
        assert three[0].tolist() == [2, 4, 6]

    def test_tokens(self) -> None:
        text = of_main(
            "(%0: !stablehlo.token, %1: tensor<f32>) -> (!stablehlo.token, tensor<f32>)",
            "return %0, %1 : !stablehlo.token, tensor<f32>",
        )
        assert called(text, [FLOAT(4)], has_token_input_output=True)[0] == 4

    def test_functions_of_tensorflow(self) -> None:
        with opkernel.Graph().as_default() as graph:
            function = opkernel.function(lambda x: raw_ops.Cumsum(x=raw_ops.Abs(x=x), axis=0))
            traced = function.get_concrete_function(opkernel.TensorSpec([3], opkernel.float32))
            traced.graph.add_to(graph)
            x = opkernel.placeholder(opkernel.float32, [3])
            (y,) = raw_ops.XlaCallModule(
                args=[x],
                module=module("calls_function"),
                function_list=[traced.name],
                Sout=[[3]],
                Tout=[FLOAT],
                version=10,
                platforms=["CPU"],
            )
        with opkernel.Session(graph) as session:
            assert session.run(y, {x: [1, -2, 3]}).tolist() == [2, 4, 7]

    def test_lapack(self) -> None:
        left = np.array([[4, 1, 0, 0], [1, 5, 2, 0], [0, 2, 6, 1], [1, 0, 0, 3]], FLOAT)
        right = np.arange(8, dtype=FLOAT).reshape(4, 2)
        (solution,) = called(module("lapack"), [left, right])
        np.testing.assert_allclose(left @ solution, right, atol=1e-5)


class TestRefused:
    @pytest.mark.parametrize(("version", "rule"), [(0, ">= 4"), (3, ">= 4"), (11, "<= 10")])
    def test_versions(self, version: int, rule: str) -> None:
        with pytest.raises(InvalidArgumentError, match=f"version {version} .* must be {rule}"):
            called(module("two_sizes"), [LEFT, RIGHT], 3, version=version)

    def test_older_versions_that_are_not(self) -> None:
        for version in range(4, 11):
            assert len(called(module("two_sizes"), [LEFT, RIGHT], 3, version=version)) == 3

    def test_platforms(self) -> None:
        with pytest.raises(NotFoundError, match=r"platform CPU is not among .*\[CUDA\]"):
            called(module("two_sizes"), [LEFT, RIGHT], 3, platforms=["CUDA"])
        unchecked = {"platforms": ["CUDA"], "disabled_checks": ["platform"]}
        assert len(called(module("two_sizes"), [LEFT, RIGHT], 3, **unchecked)) == 3
        with pytest.raises(InvalidArgumentError, match="platforms"):
            called(module("two_sizes"), [LEFT, RIGHT], 3, platforms=[])

    def test_assertions_about_shapes(self) -> None:
        with pytest.raises(InvalidArgumentError, match="Expected value >= 1 for dimension"):
            called(module("two_sizes"), [LEFT[:0], RIGHT], 3)
        found = called(
            module("two_sizes"), [LEFT[:0], RIGHT], 3, disabled_checks=["shape_assertions"]
        )
        assert [one.shape for one in found] == [(0, 2), (5,), (0,)]

    @pytest.mark.parametrize(
        ("args", "why"),
        [
            ([LEFT], "must be called with 2"),
            ([LEFT, RIGHT, RIGHT], "must be called with 2"),
            ([LEFT.astype(np.float64), RIGHT], "Element type mismatch for argument 0"),
            ([LEFT[:, :4], RIGHT], "Shape mismatch for argument 0"),
            ([LEFT, RIGHT[0]], "Shape mismatch for argument 1"),
        ],
    )
    def test_arguments(self, args: list[Any], why: str) -> None:
        with pytest.raises(InvalidArgumentError, match=why):
            called(module("two_sizes"), args, 3)

    def test_results(self) -> None:
        with pytest.raises(InvalidArgumentError, match="gives float, float, float, and the node"):
            called(module("two_sizes"), [LEFT, RIGHT], Tout=[FLOAT, FLOAT, np.int32])

    @pytest.mark.parametrize(
        "artifact", [b"", b"ML\xefR", b"no module", module("two_sizes")[:800], b"module {}"]
    )
    def test_damage(self, artifact: bytes) -> None:
        with pytest.raises(InvalidArgumentError):
            called(artifact, [LEFT, RIGHT], 3)

    def test_damage_that_ends_the_process_that_reads(self) -> None:
        """With this byte, MLIR's reader follows a number out of its table."""
        damaged = bytearray(module("two_sizes"))
        damaged[2518] = 1
        with pytest.raises(InvalidArgumentError, match="damaged"):
            called(bytes(damaged), [LEFT, RIGHT], 3)

    @pytest.mark.parametrize("target", ["xla_ffi_python_cpu_callback", "TopK", "lapack_sgetrf"])
    def test_custom_calls(self, target: str) -> None:
        call = f"%1 = stablehlo.custom_call @{target}(%0) : (tensor<3x5xf32>) -> tensor<3x5xf32>"
        text = of_main(SAME, call, "return %1 : tensor<3x5xf32>")
        with pytest.raises(UnimplementedError, match=f"calls '{target}'"):
            called(text, [LEFT])

    def test_lapack_that_would_write_past_its_result(self) -> None:
        call = (
            "%1:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%0) {mhlo.backend_config = {}} : "
            "(tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<1xi32>, tensor<i32>)"
        )
        text = of_main(SAME, call, "return %1#0 : tensor<3x5xf32>")
        with pytest.raises(
            InvalidArgumentError, match=r"gives \[3, 5\], \[1\], \[\] where it writes"
        ):
            called(text, [LEFT])

    def test_a_fourier_transform_of_another_length(self) -> None:
        """XLA's runtime would end the process."""
        text = of_main(
            "(%0: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>",
            "%1 = stablehlo.fft %0, type = FFT, length = [7] : "
            "(tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>",
            "return %1 : tensor<8xcomplex<f32>>",
        )
        numbers = np.arange(8).astype(np.complex64)
        with pytest.raises(InvalidArgumentError, match=r"has the lengths \[7\]"):
            called(text, [numbers], Tout=[np.complex64])
        (found,) = called(text.replace("[7]", "[8]"), [numbers], Tout=[np.complex64])
        np.testing.assert_allclose(found, np.fft.fft(numbers), atol=1e-4)

    def test_talk_to_the_host(self) -> None:
        text = of_main(
            SAME,
            "%1 = stablehlo.create_token : !stablehlo.token",
            '%2:2 = "stablehlo.infeed"(%1) {infeed_config = ""} : (!stablehlo.token) -> '
            "(tensor<3x5xf32>, !stablehlo.token)",
            "return %2#0 : tensor<3x5xf32>",
        )
        with pytest.raises(UnimplementedError, match=r"stablehlo\.infeed"):
            called(text, [LEFT])

    def test_a_tensor_that_is_too_large(self) -> None:
        text = of_main(
            "(%0: tensor<f32>) -> tensor<f32>",
            "%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9999999x9999999xf32>",
            "%2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [0, 1] : "
            "(tensor<9999999x9999999xf32>, tensor<f32>) -> tensor<f32>",
            "return %2 : tensor<f32>",
        )
        with pytest.raises(opkernel.errors.ResourceExhaustedError, match="9999999"):
            called(text, [FLOAT(1)])

    def test_without_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("opkernel.libraries.is_installed", lambda module: module != "jax")
        with pytest.raises(UnimplementedError, match=r"XlaCallModule needs .*opkernel\[xla\]"):
            called(module("two_sizes"), [LEFT, RIGHT], 3)

    def test_where_nothing_may_be_compiled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPKERNEL_JIT", "never")
        with pytest.raises(FailedPreconditionError, match="OPKERNEL_JIT=never"):
            called(module("two_sizes"), [LEFT, RIGHT], 3)


class TestSavedModel:
    def test_values(self) -> None:
        model = opkernel.load(MODEL)
        np.testing.assert_allclose(model.signatures["serving_default"](x=X)["y"], Y, atol=1e-6)
        np.testing.assert_allclose(model.f(X[:1])["y"], Y[:1], atol=1e-6)

    @pytest.mark.parametrize("jit", ["off", "xla!"])
    def test_values_in_a_session(self, jit: str) -> None:
        with opkernel.load_as_session(MODEL, jit=jit) as model:
            found = model.signatures["serving_default"](x=X)
        np.testing.assert_allclose(found["y"], Y, atol=1e-6)

    def test_gradients(self) -> None:
        model = opkernel.load(MODEL)

        def loss(x: Any) -> Any:
            y = model.f(x)["y"]
            return raw_ops.Sum(input=y * y, axis=[0, 1])

        _, grads = opkernel.value_and_grad(loss, model)(X)
        for found, expected in zip(grads, GRADIENTS, strict=True):
            np.testing.assert_allclose(found, np.asarray(expected), atol=1e-6)

    def test_part_of_a_larger_program(self) -> None:
        @opkernel.function(jit_compile=True)
        def run(x: Any, y: Any) -> Any:
            found = raw_ops.XlaCallModule(
                args=[x + 1.0, y],
                module=module("two_sizes"),
                Sout=[None] * 3,
                Tout=[FLOAT] * 3,
                version=10,
                platforms=["CPU"],
            )
            return raw_ops.Neg(x=found[0])

        np.testing.assert_allclose(np.asarray(run(LEFT, RIGHT)), -(LEFT + 1) @ RIGHT)
