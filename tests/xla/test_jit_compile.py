"""`opkernel.function(jit_compile=True)`."""

import sys
import threading

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import NotFoundError, UnimplementedError
from opkernel.graph import placeholder

pytestmark = pytest.mark.jax


def test_results_keep_their_form():
    @opkernel.function(jit_compile=True)
    def both(x, *, factor):
        return {"doubled": x * np.float32(2), "rest": [x, factor]}

    found = both(np.array([1, 2], np.float32), factor=np.int64(3))
    np.testing.assert_array_equal(found["doubled"], [2, 4])
    np.testing.assert_array_equal(found["rest"][0], [1, 2])
    assert found["rest"][1] == 3


def test_results_belong_to_the_caller():
    @opkernel.function(jit_compile=True)
    def same(x):
        return x + np.float32(0)

    found = same(np.zeros(3, np.float32))
    found[0] = 1
    np.testing.assert_array_equal(same(np.zeros(3, np.float32)), [0, 0, 0])


def test_each_shape_has_a_program():
    @opkernel.function(
        jit_compile=True, input_signature=[opkernel.TensorSpec((None,), opkernel.float32)]
    )
    def total(x):
        return raw_ops.Sum(input=x, axis=[0])

    for size in (3, 5, 3):
        assert total(np.ones(size, np.float32)) == size
    assert total.experimental_get_tracing_count() == 1


def test_variables_are_read_and_assigned():
    variable = opkernel.Variable(np.array([1, 2], np.float32))

    @opkernel.function(jit_compile=True)
    def add(x):
        variable.assign_add(x)
        return variable * np.float32(10)

    np.testing.assert_array_equal(add(np.array([1, 1], np.float32)), [20, 30])
    variable.assign(np.array([0, 0], np.float32))
    np.testing.assert_array_equal(add(np.array([1, 1], np.float32)), [10, 10])
    np.testing.assert_array_equal(variable.numpy(), [1, 1])


def test_no_assignment_is_lost_among_threads():
    variable = opkernel.Variable(np.int64(0))

    @opkernel.function(jit_compile=True)
    def count():
        variable.assign_add(np.int64(1))

    count()
    threads = [threading.Thread(target=lambda: [count() for _ in range(25)]) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert variable.numpy() == 1 + 16 * 25


def test_an_error_names_the_line_that_made_the_node():
    @opkernel.function(jit_compile=True)
    def text(x):
        return raw_ops.AsString(input=x)

    with pytest.raises(NotFoundError, match="no XLA rule for AsString") as raised:
        text(np.float32(1))
    (note,) = raised.value.__notes__
    assert note.startswith(f"'AsString' was made at {__file__}:")


def test_the_function_carries_the_attr_and_runs_in_graphs():
    @opkernel.function(jit_compile=True)
    def double(x):
        return x + x

    concrete = double.get_concrete_function(opkernel.TensorSpec((2,), opkernel.float32))
    assert concrete.function_def.attr["_XlaMustCompile"].b
    with opkernel.Graph().as_default() as graph:
        x = placeholder(opkernel.float32, (2,), name="x")
        y = double(x)
    with opkernel.Session(graph) as session:
        np.testing.assert_array_equal(session.run(y, {x: np.array([1, 2], np.float32)}), [2, 4])


def test_without_jax_the_error_names_the_extra(monkeypatch):
    from opkernel.xla import jax_numpy

    @opkernel.function(jit_compile=True)
    def double(x):
        return x + x

    jax_numpy.jax.cache_clear()
    for name in ["jax", *(name for name in sys.modules if name.partition(".")[0] == "jax")]:
        monkeypatch.setitem(sys.modules, name, None)
    try:
        with pytest.raises(UnimplementedError, match=r"pip install 'opkernel\[xla\]'"):
            double(np.float32(1))
    finally:
        jax_numpy.jax.cache_clear()
