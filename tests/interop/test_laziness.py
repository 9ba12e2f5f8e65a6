"""What is not used is neither made ready nor read."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import opkernel
import opkernel.runtime
import opkernel.training.variable as variable_module
from opkernel.checkpoint import BundleWriter, load_checkpoint, merge_bundles
from opkernel.errors import DataLossError, NotFoundError, OpError
from opkernel.opdef import UnregisteredOpError, global_op_registry, unknown_shape

F32 = np.float32


def function_of(meta_graph, name):
    """The FunctionDef that was made of a Python function."""
    functions = meta_graph.graph_def.library.function
    (found,) = [f for f in functions if f.signature.name.startswith(f"__inference_{name}_")]
    return found


def test_a_broken_function_that_nobody_calls_does_no_harm(sample):
    def break_it(meta_graph):
        function_of(meta_graph, "pair").node_def[0].input[0] = "nothing"

    model = opkernel.load(sample("signatures", break_it))
    assert [*model.signatures] == ["constant", "pair", "serving_default", "unnamed"]
    assert repr(model.pair).startswith("<opkernel.LoadedFunction pair")
    assert model.scaled(np.ones(2, F32), F32(3)).keys() == {"y", "n"}
    with pytest.raises(OpError, match=r"input nothing.*\n.*\n.*In function '__inference_pair_"):
        model.pair(np.ones(2, F32), np.ones(2, F32))


def test_a_model_without_the_values_of_its_variables_runs_what_needs_none(sample):
    directory = sample("signatures")
    for file in (directory / "variables").iterdir():
        file.unlink()
    model = opkernel.load(directory)
    assert model.unnamed(np.zeros(1, F32)).tolist() == [1]
    assert [variable.shape.as_list() for variable in model.variables] == [[]]
    with pytest.raises(NotFoundError, match="variables"):
        model.scaled(np.ones(2, F32), F32(3))
    model.w.assign(10)  # what is assigned need not be read
    assert model.scaled(np.ones(2, F32), F32(3))["y"].tolist() == [30, 30]


def test_a_shard_that_nobody_needs_may_be_missing(sample, tmp_path):
    directory = sample("shared_names")
    prefix = str(directory / "variables" / "variables")
    parts = [str(tmp_path / f"part{i}") for i in range(2)]
    with load_checkpoint(prefix) as reader:
        keys = [key for key in reader if not key.startswith("b/")]
        for path, chosen in zip(parts, (keys, {*reader} - {*keys}), strict=True):
            with BundleWriter(path) as writer:
                for key in sorted(chosen):
                    writer.add(key, reader.get(key), reader.dtype(key))
    for file in (directory / "variables").iterdir():
        file.unlink()
    merge_bundles(parts, prefix)
    (directory / "variables" / "variables.data-00001-of-00002").unlink()
    model = opkernel.load(directory)
    with pytest.warns(UserWarning, match="its fingerprint differs"):
        model.a.w.numpy()
    assert model.a(np.zeros((1, 2), F32)).shape == (1, 2)
    with pytest.raises(NotFoundError, match=r"Tensor b/w/.*data-00001-of-00002"):
        model.b(np.zeros((1, 2), F32))


def test_a_table_whose_asset_is_missing_is_missed_by_its_users_alone(sample):
    directory = sample("tables")
    next((directory / "assets").iterdir()).unlink()
    model = opkernel.load(directory)
    assert model.f(np.array([2], np.int64))[0].tolist() == [20]
    with pytest.raises(NotFoundError, match=r"tables.txt"):
        model.index(np.array([b"one"], object))


def test_what_uses_no_unknown_op_runs(sample):
    def rename(meta_graph):
        for node in function_of(meta_graph, "pair").node_def:
            node.op = "NobodysOp" if node.op == "AddV2" else node.op

    model = opkernel.load(sample("signatures", rename))
    one = np.ones(2, F32)
    assert "odd-name" in repr(model.signatures["pair"])
    assert model.unnamed(one).tolist() == [2, 2]
    message = (
        r"'NobodysOp'.*install a plugin(.|\n)*node add(.|\n)*'__inference_pair_\d+' of .*signatures"
    )
    with pytest.raises(UnregisteredOpError, match=message):
        model.pair(one, one)
    with pytest.raises(UnregisteredOpError, match=r"'NobodysOp'(.|\n)*node add(.|\n)*wrapper_pair"):
        model.signatures["pair"](b=one, odd_name=one)


def test_what_uses_no_unknown_op_of_a_session_runs(sample):
    def rename(meta_graph):
        for node in meta_graph.graph_def.node:
            node.op = "NobodysOp" if node.name == "sub" else node.op

    directory = sample("several_meta_graphs", rename)
    model = opkernel.load(directory, tags="serve")
    x = np.ones(2, F32)
    assert model.signatures["serving_default"](x=x)["out"].tolist() == [3, 3]
    with pytest.raises(OpError, match=r"NobodysOp(.|\n)*sub"):
        model.run("sub:0", {"x:0": x})


@pytest.fixture
def op_without_kernel():
    opkernel.register_op(
        "InteropSum",
        inputs=["x: T", "y: T"],
        outputs=["z: T"],
        attrs=["T: type"],
        shape_fn=unknown_shape,
    )
    yield "InteropSum"
    global_op_registry().unregister("InteropSum")


def test_an_op_without_a_kernel_is_told_with_its_place_and_a_way_out(sample, op_without_kernel):
    def rename(meta_graph):
        for node in function_of(meta_graph, "total").node_def:
            node.op = op_without_kernel if node.op == "AddV2" else node.op

    model = opkernel.load(sample("nested_modules", rename))
    assert model(np.zeros((1, 3), F32)).shape == (1, 1)
    with pytest.raises(
        NotFoundError,
        match=r"'InteropSum' OpKernel(.|\n)*--library(.|\n)*In function '__inference_total",
    ):
        model.total()


def test_a_value_of_another_shape_is_found_when_it_is_read(sample):
    def change(meta_graph):
        for node in meta_graph.object_graph_def.nodes:
            if node.variable.name == "w":
                node.variable.shape.dim[0].size = 4

    model = opkernel.load(sample("linear", change))
    assert model.b.numpy().shape == (2,)
    with pytest.raises(DataLossError, match=r"saved_model.pb is damaged: variable 'w' is .*w/.ATT"):
        model.w.numpy()


def test_listing_variables_makes_no_resources(sample, monkeypatch):
    made = []
    execute = opkernel.runtime.execute

    def noted(op, *given):
        made.extend([op] if op == "VarHandleOp" else [])
        return execute(op, *given)

    monkeypatch.setattr(variable_module, "execute", noted)
    model = opkernel.load(sample("nested_modules"))
    assert len(model.variables) == 11
    assert all(one.trainable for one in model.trainable_variables)
    assert not made
    assert model.named["scale"].numpy() == 2
    assert len(made) == 1


def test_threads_that_use_a_variable_first_share_its_resource(sample):
    model = opkernel.load(sample("nested_modules"))
    (variable,) = [one for one in model.variables if one.name == "one"]
    with ThreadPoolExecutor(8) as pool:
        handles = [*pool.map(lambda _: id(variable.resource_handle), range(64))]
        [*pool.map(lambda _: variable.assign_add(1), range(64))]
    assert len({*handles}) == 1
    assert variable.numpy() == 65
