"""Lists in sessions with XLA give what they give without: no element is lost, and none is made up."""

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph

pytest.importorskip("jax")
pytestmark = pytest.mark.jax

FLOAT = opkernel.float32
ONE, TWO = np.array([[1, 2], [3, 4]], np.float32)


def fed(value, name=None):
    """A value that nobody knows when the graph is compiled."""
    return raw_ops.PlaceholderWithDefault(input=value, shape=np.shape(value), name=name)


def empty(most=5):
    return raw_ops.EmptyTensorList(element_shape=[2], max_num_elements=most, element_dtype=FLOAT)


def reserved(count):
    return raw_ops.TensorListReserve(element_shape=[2], num_elements=count, element_dtype=FLOAT)


def of_rows(rows):
    return raw_ops.TensorListFromTensor(tensor=fed(np.float32(rows)), element_shape=[2])


def pushed(items, *values):
    for value in values:
        items = raw_ops.TensorListPushBack(input_handle=items, tensor=fed(value))
    return items


def popped(items):
    return raw_ops.TensorListPopBack(input_handle=items, element_shape=[2], element_dtype=FLOAT)


def with_item(items, index, value, *, grows=False):
    return raw_ops.TensorListSetItem(
        input_handle=items,
        index=index,
        item=fed(value),
        resize_if_index_out_of_bounds=grows,
    )


def stacked(items):
    return raw_ops.TensorListStack(
        input_handle=items, element_shape=[2], element_dtype=FLOAT, num_elements=-1
    )


def joined(items):
    return raw_ops.TensorListConcatV2(
        input_handle=items,
        element_shape=[2],
        leading_dims=np.zeros(0, np.int64),
        element_dtype=FLOAT,
    )


def looped(items, count, turn):
    """A list after so many turns, of which the program learns only when it runs."""
    found = opkernel.while_loop(
        lambda i, items, n: raw_ops.Less(x=i, y=n),
        lambda i, items, n: (i + 1, turn(i, items), n),
        [np.int32(0), items, fed(np.int32(count))],
    )
    return found[1]


def chosen(taken, items):
    return opkernel.cond(
        fed(np.bool_(taken)), lambda: pushed(items, TWO), lambda: pushed(items, ONE, TWO)
    )


CASES = {
    "not full": lambda: stacked(pushed(empty(), ONE, TWO)),
    "not full, joined": lambda: joined(pushed(empty(), ONE, TWO))[0],
    "not full, lengths": lambda: joined(pushed(empty(), ONE, TWO))[1],
    "one is gone": lambda: stacked(popped(pushed(empty(2), ONE, TWO))[0]),
    "the one that is gone": lambda: popped(popped(pushed(empty(), ONE, TWO))[0])[1],
    "a row more": lambda: stacked(pushed(of_rows([[5, 6]]), ONE, TWO)),
    "more than were reserved": lambda: stacked(pushed(reserved(1), ONE)),
    "set": lambda: stacked(with_item(reserved(3), 1, ONE)),
    "set beyond the end": lambda: stacked(
        with_item(with_item(reserved(1), 0, ONE, grows=True), 2, TWO, grows=True)
    ),
    "pushed in a loop": lambda: stacked(looped(empty(), 3, lambda i, items: pushed(items, ONE))),
    "as many as there may be": lambda: stacked(
        looped(empty(3), 3, lambda i, items: pushed(items, ONE))
    ),
    "set in a loop": lambda: stacked(
        looped(reserved(4), 3, lambda i, items: with_item(items, i, ONE))
    ),
    "pushed and popped in a loop": lambda: stacked(
        looped(pushed(empty(), TWO), 3, lambda i, items: popped(pushed(items, ONE))[0])
    ),
    "made longer in a loop": lambda: stacked(
        looped(of_rows([[5, 6]]), 2, lambda i, items: pushed(items, ONE))
    ),
    "a branch": lambda: stacked(chosen(True, empty())),
    "the other branch": lambda: stacked(chosen(False, empty())),
    "their number": lambda: raw_ops.TensorListLength(input_handle=pushed(empty(), ONE, TWO)),
}  # fmt: skip


def run(make, jit):
    with Graph().as_default() as graph:
        y = make()
    config = opkernel.SessionConfig(jit=jit, min_cluster_size=1)
    with opkernel.Session(graph, config=config) as session:
        return session.run(y)


@pytest.mark.parametrize("case", CASES)
def test_a_list_has_the_elements_that_it_has_without_an_engine(case):
    np.testing.assert_array_equal(run(CASES[case], "xla!"), run(CASES[case], "off"))


def test_a_list_that_a_loop_only_sets_is_compiled(caplog):
    """How many elements it has is known: the loop changes none of it."""
    run(CASES["set in a loop"], "xla!")
    assert not caplog.messages


@pytest.mark.parametrize(
    "make",
    [
        lambda: stacked(pushed(empty(1), ONE, TWO)),
        lambda: popped(popped(pushed(empty(), ONE))[0])[1],
    ],
    ids=["full", "empty"],
)
def test_what_kernels_refuse_is_refused(make):
    for jit in ("off", "xla"):
        with pytest.raises(InvalidArgumentError, match=r"full|empty"):
            run(make, jit)
