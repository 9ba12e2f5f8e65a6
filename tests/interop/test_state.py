"""State belongs to the loaded model; threads see whole values."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import opkernel
from opkernel.errors import InvalidArgumentError

F32 = np.float32


def test_two_loads_of_a_directory_share_nothing(sample):
    directory = sample("captured")
    first, second = opkernel.load(directory), opkernel.load(directory)
    first.v.assign([5, 6])
    first.nothing()
    assert first.v.numpy().tolist() == [5, 6]
    assert second.v.numpy().tolist() == [1, 2]
    assert (first.count.numpy(), second.count.numpy()) == (10, 0)


def test_two_loads_have_tables_of_their_own(sample):
    directory = sample("tables")
    first, second = opkernel.load(directory), opkernel.load(directory)
    keys = np.array([100], np.int64)
    first.insert(keys, np.array([[3, 4]], F32))
    assert first.f(keys)[1].tolist() == [[3, 4]]
    assert second.f(keys)[1].tolist() == [[0, 0]]
    assert [first.f(keys)[2].tolist(), second.f(keys)[2].tolist()] == [[200], [-1]]


def test_two_loads_meet_in_one_function(sample):
    directory = sample("captured")
    first, second = opkernel.load(directory), opkernel.load(directory)
    first.v.assign([0, 1])
    second.v.assign([0, 10])

    @opkernel.function
    def both(x):
        return first.f(x), second.f(x)

    one, ten = both(np.ones(20, F32))
    np.testing.assert_allclose(ten - 1, (one - 1) * 10, rtol=1e-4, atol=1e-4)
    assert (first.count.numpy(), second.count.numpy()) == (1, 1)


def test_sessions_of_two_loads_share_nothing(sample):
    directory = sample("partitioned")
    first, second = opkernel.load(directory), opkernel.load(directory)
    before = second.variables[0].numpy()
    first.variables[0].assign(np.zeros((3, 4), F32))
    assert first.variables[0].numpy().tolist() == np.zeros((3, 4)).tolist()
    assert second.variables[0].numpy().tolist() == before.tolist()


def test_variables_are_read_and_assigned_from_python(sample):
    model = opkernel.load(sample("linear"))
    assert [variable.name for variable in model.variables] == ["w", "b"]
    w, b = model.variables
    assert w is model.w
    w.assign(np.zeros((3, 2), F32))
    b.assign([1, 2])
    assert model(np.ones((1, 3), F32)).tolist() == [[1, 2]]
    b.assign_add([1, 1])
    assert np.asarray(b).tolist() == [2, 3]
    with pytest.raises(InvalidArgumentError, match="'w' has the shape"):
        w.assign(np.zeros((2, 3), F32))
    with pytest.raises(InvalidArgumentError, match="of type float"):
        w.assign(np.zeros((3, 2), np.float64))


def test_values_of_variables_have_their_types(sample):
    values = opkernel.load(sample("types_of_variables")).values
    assert values["string"].numpy().tolist() == [b"a", b"b\0c"]
    assert values["bfloat16"].numpy().astype(F32).tolist() == [1.5, -2]
    assert values["bool"].numpy().tolist() == [True, False]
    assert values["complex"].numpy().tolist() == [1 + 2j]
    assert values["uint64"].numpy().tolist() == [2**63]
    assert values["scalar"].numpy() == 7
    assert values["empty"].numpy().shape == (0, 3)
    assert values["unknown"].shape.as_list() == [None, 3]


def test_what_was_read_stays_as_it_was(sample):
    model = opkernel.load(sample("captured"))
    before = model.v.numpy()
    old, new = model.set(np.array([3, 4], F32))
    model.v.assign_add([1, 1])
    assert before.tolist() == old.tolist() == [1, 2]
    assert new.tolist() == [3, 4]
    before[:] = 100
    assert model.v.numpy().tolist() == [4, 5]


def test_readers_never_see_half_of_an_assignment(sample):
    model = opkernel.load(sample("types_of_variables"))
    variable = model.values["unknown"]
    arrays = [np.full((20_000 + i, 3), i, F32) for i in range(4)]
    variable.assign(arrays[0])
    stop = threading.Event()

    def write():
        while not stop.is_set():
            for array in arrays:
                variable.assign(array)

    def read(whole):
        for _ in range(60):
            value = whole()
            assert len(value) == 20_000 + value[0, 0]
            assert (value == value[0, 0]).all()

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write)]
        reading = [pool.submit(read, f) for f in (variable.numpy, lambda: model.all()["unknown"])]
        try:
            for one in reading:
                one.result()
        finally:
            stop.set()
        writing[0].result()


def test_many_threads_may_be_the_first(sample):
    model = opkernel.load(sample("tables"))
    barrier = threading.Barrier(8)
    keys = np.array([1, 5, 7], np.int64)

    def first():
        barrier.wait()
        return [part.tolist() for part in model.f(keys)]

    with ThreadPoolExecutor(8) as pool:
        results = [one.result() for one in [pool.submit(first) for _ in range(8)]]
    assert results == [[[10, -1, -1], [[0, 0], [1, 2], [0, 0]], [-1, -1, 70]]] * 8


def test_resources_that_a_function_makes_belong_to_the_model(sample):
    """The table of `nothing` is made in a function that it calls, under a name of its own."""

    def change(meta_graph):
        library = meta_graph.graph_def.library
        inner = library.function.add()
        inner.signature.name = "inner"
        inner.signature.is_stateful = True
        inner.signature.output_arg.add(name="size", type=9)
        table = inner.node_def.add(name="table", op="MutableHashTableV2")
        table.attr["key_dtype"].type = table.attr["value_dtype"].type = 9
        table.attr["shared_name"].s = b"the table"
        for name in ("key", "value"):
            constant = inner.node_def.add(name=name, op="Const")
            constant.attr["dtype"].type = 9
            constant.attr["value"].tensor.dtype = 9
            constant.attr["value"].tensor.int64_val.append(len(library.function))
        insert = inner.node_def.add(name="insert", op="LookupTableInsertV2")
        insert.attr["Tin"].type = insert.attr["Tout"].type = 9
        insert.input.extend(["table:table_handle:0", "key:output:0", "value:output:0", "^size"])
        inner.signature.control_output.append("insert")
        inner.control_ret["insert"] = "insert"
        size = inner.node_def.add(name="size", op="LookupTableSizeV2")
        size.input.extend(["table:table_handle:0"])
        inner.ret["size"] = "size:size:0"
        (outer,) = [
            f for f in library.function if f.signature.name.startswith("__inference_total_")
        ]
        call = outer.node_def.add(name="call", op="StatefulPartitionedCall")
        call.attr["f"].func.name = "inner"
        call.attr["Tin"].list.SetInParent()
        call.attr["Tout"].list.type.append(9)
        cast = outer.node_def.add(name="cast", op="Cast")
        cast.input.append("call:output:0")
        cast.attr["SrcT"].type, cast.attr["DstT"].type = 9, 1
        (result,) = outer.ret
        outer.ret[result] = "cast:y:0"
        outer.signature.is_stateful = True

    directory = sample("nested_modules", change)
    first, second = opkernel.load(directory), opkernel.load(directory)
    assert [first.total(), second.total(), first.total()] == [0, 0, 1]
