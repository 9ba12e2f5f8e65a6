"""opkernel.save of modules that hold loaded models, parts of them, and tables."""

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.interop.saved_modules import Dense, X

import opkernel
from opkernel import Module, TensorSpec, Variable, lookup, raw_ops, value_and_grad
from opkernel.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    PermissionDeniedError,
    UnimplementedError,
)

KEYS = np.array([1, 3, 5, 7, 8, 9], np.int64)
WORDS = np.array([b"two", b"zero", b"three"], object)
load: Any = opkernel.load


class Transfer(Module):
    """A loaded model with a head."""

    def __init__(self, base: Any) -> None:
        self.base = base
        self.head = Variable(np.ones((2, 1), np.float32), name="head")

    @opkernel.function(input_signature=[TensorSpec([None, 3], opkernel.float32, "x")])
    def __call__(self, x: Any) -> Any:
        return self.base(x) @ self.head


def loss(model: Any, x: Any) -> Any:
    y = model(x) - 1
    return raw_ops.Mean(input=y * y, axis=[0, 1])


def train(model: Any, optimizer: Any, steps: int) -> list[float]:
    objective = functools.partial(loss, model)
    objective.__name__ = "loss"  # type: ignore[attr-defined]  # partials may have any attribute
    return [float(optimizer.minimize(objective, model, X)) for _ in range(steps)]


def saved(module: Any, path: Path, **options: Any) -> Any:
    opkernel.save(module, path, **options)
    return load(path)


def test_a_loaded_base_with_a_new_head(sample: Any, tmp_path: Path) -> None:
    model = Transfer(load(sample("linear")))
    losses = train(model, opkernel.optimizers.SGD(0.01), 3)
    assert losses == sorted(losses, reverse=True)
    loaded = saved(model, tmp_path / "model")
    np.testing.assert_array_equal(loaded(X), model(X))
    np.testing.assert_array_equal(loaded.base(X), model.base(X))
    np.testing.assert_array_equal(loaded.signatures["serving_default"](x=X)["output_0"], model(X))
    assert [one.name for one in loaded.trainable_variables] == ["head", "w", "b"]
    again = [train(one, opkernel.optimizers.Adam(0.1), 3) for one in (model, loaded)]
    np.testing.assert_allclose(again[1], again[0], rtol=1e-6)


def test_objects_of_a_loaded_part_keep_their_paths(sample: Any, tmp_path: Path) -> None:
    base = load(sample("nested_modules"))
    module: Any = Module()
    module.base, module.first, module.pair = base, base.layers[0], base.pair
    loaded = saved(module, tmp_path / "model")
    assert loaded.first is loaded.base.layers[0] is loaded.base.named["first"]
    assert loaded.base.parent is loaded.base
    assert loaded.pair[1] is loaded.base.pair[1]
    np.testing.assert_array_equal(loaded.base(X), base(X))
    np.testing.assert_array_equal(loaded.first(X), base.layers[0](X))


def test_a_part_needs_only_what_its_functions_use(sample: Any, tmp_path: Path) -> None:
    base = load(sample("nested_modules"))
    module: Any = Module()
    module.part = base.layers[0]
    loaded = saved(module, tmp_path / "model")
    np.testing.assert_array_equal(loaded.part(X), base.layers[0](X))
    assert len(loaded.variables) == 2
    module.total = base.total
    with pytest.raises(InvalidArgumentError, match=r"uses <opkernel.Variable (.|\n)*In 'total' of"):
        opkernel.save(module, tmp_path / "model")


def test_two_loads_of_one_model_stay_apart(sample: Any, tmp_path: Path) -> None:
    directory = sample("tables")
    module: Any = Module()
    module.one, module.two = load(directory), load(directory)
    module.one.insert(np.array([9], np.int64), np.full((1, 2), 7, np.float32))
    loaded = saved(module, tmp_path / "model")
    for name in ("one", "two"):
        for found, expected in zip(
            getattr(loaded, name).f(KEYS), getattr(module, name).f(KEYS), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
        assert getattr(loaded, name).index(WORDS).tolist() == [2, 0, -1]
    assert loaded.one.f(KEYS)[1][-1].tolist() == [7, 7]
    assert sorted(os.listdir(tmp_path / "model" / "assets")) == ["tables.txt", "tables_1.txt"]


def test_names_of_functions_do_not_grow(sample: Any, tmp_path: Path) -> None:
    names = []
    model = load(sample("custom_gradient"))
    (asked,) = model.meta_graph.graph_def.library.registered_gradients
    for turn in range(3):
        module: Any = Module()
        module.inner = model
        inner = functools.partial(module.inner.loss)
        module.f = opkernel.function(inner, [TensorSpec([3], opkernel.float32)], name="f")
        loaded = saved(module, tmp_path / str(turn))
        model = loaded.inner
        library = loaded.meta_graph.graph_def.library
        names.append({function.signature.name for function in library.function})
        assert [one.registered_op_type for one in library.registered_gradients] == [
            asked.registered_op_type
        ]
    inference = [{name for name in found if "loss" in name or "grad" in name} for found in names]
    assert inference[0] == inference[1] == inference[2]


def test_custom_gradients_stay(sample: Any, tmp_path: Path) -> None:
    module: Any = Module()
    module.a, module.b = (load(sample("custom_gradient")) for _ in range(2))
    module.f = opkernel.function(
        lambda x: module.a.loss(x) + module.b.loss(x) * 2, [TensorSpec([3], opkernel.float32)]
    )
    x = np.array([0.1, 0.2, -0.3], np.float32)
    for model in (module, saved(module, tmp_path / "model")):
        _, grads = value_and_grad(model.f, [model.a.w, model.b.w])(x)
        # The custom gradient is the incoming one times 3, at most 0.5.
        for grad in grads:
            np.testing.assert_allclose(grad, 0.5 * x, rtol=1e-6)


def test_an_asset_travels(sample: Any, tmp_path: Path) -> None:
    base = load(sample("asset"))
    module: Any = Module()
    module.base, module.file = base, base.file
    opkernel.save(module, tmp_path / "model")
    (tmp_path / "asset" / "assets" / "asset.bin").unlink()
    loaded = load(tmp_path / "model")
    assert loaded.base.content() == b"what the asset holds"
    assert loaded.file is loaded.base.file


def test_an_asset_that_leads_outside_is_not_copied(sample: Any, tmp_path: Path) -> None:
    directory = sample("asset")
    (tmp_path / "secret").write_text("secret")
    (directory / "assets" / "asset.bin").unlink()
    (directory / "assets" / "asset.bin").symlink_to(tmp_path / "secret")
    module: Any = Module()
    module.base = load(directory)
    with pytest.raises(PermissionDeniedError):
        opkernel.save(module, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_functions_and_signatures_of_loaded_models_become_signatures(
    sample: Any, tmp_path: Path
) -> None:
    base = load(sample("signatures"))
    module: Any = Module()
    module.base = base
    x = np.arange(3, dtype=np.float32)
    given = {"pair": base.signatures["pair"], "scaled": base.scaled}
    loaded = saved(module, tmp_path / "model", signatures=given)
    scaled = loaded.signatures["scaled"](x=x, scale=np.float32(3))
    assert {name: value.tolist() for name, value in scaled.items()} == {"n": 3, "y": [0, 6, 12]}
    pair = loaded.signatures["pair"](**{"odd-name": x, "b": x * 2})
    assert pair["output_0"].tolist() == [0, 3, 6]
    assert sorted(loaded.base.saved_attributes["signatures"].saved_attributes) == [
        "constant",
        "pair",
        "serving_default",
        "unnamed",
    ]


# Tables of the module itself.


class Tables(Module):
    def __init__(self, file: Path) -> None:
        initializer = lookup.KeyValueTensorInitializer(
            [1, 2], np.array([5, 6], np.float32), key_dtype=opkernel.int64
        )
        self.static = lookup.StaticHashTable(initializer, -1)
        index = lookup.TextFileIndex
        lines = lookup.TextFileInitializer(
            file, opkernel.string, index.WHOLE_LINE, opkernel.int64, index.LINE_NUMBER
        )
        self.words = lookup.StaticHashTable(lines, -1)
        self.rows = [lookup.MutableHashTable(opkernel.int64, opkernel.float32, [0.0, 0.0])]
        self.names = lookup.MutableHashTable(opkernel.int64, opkernel.string, "nothing")

    @opkernel.function(input_signature=[TensorSpec([None], opkernel.int64, "k")])
    def __call__(self, k: Any) -> Any:
        return self.static.lookup(k), self.rows[0].lookup(k)

    @opkernel.function(input_signature=[TensorSpec([None], opkernel.string, "w")])
    def index(self, w: Any) -> Any:
        found = self.words.lookup(w)
        return found, self.names.lookup(found)

    @opkernel.function(input_signature=[TensorSpec([None], opkernel.int64, "k")])
    def count(self, k: Any) -> Any:
        """Add up how often a key was seen."""
        row = raw_ops.ExpandDims(input=raw_ops.OnesLike(x=k), axis=1)
        one = raw_ops.Cast(x=row, DstT=opkernel.float32)
        ones = raw_ops.ConcatV2(values=[one, one], axis=1)
        self.rows[0].insert(k, self.rows[0].lookup(k) + ones)
        return self.rows[0].size()


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Tables of all kinds; the text file is gone when the test begins."""
    file = tmp_path / "words.txt"
    file.write_text("zero\none\ntwo\n")
    module = Tables(file)
    module.rows[0].insert([5], [[1, 2]])
    module.names.insert([2], ["zwei"])
    return module


def check_tables(module: Any) -> None:
    static, rows = module(np.array([1, 3, 5]))
    assert static.tolist() == [5, -1, -1]
    assert rows.tolist() == [[0, 0], [0, 0], [1, 2]]
    index, names = module.index(WORDS)
    assert index.tolist() == [2, 0, -1]
    assert names.tolist() == [b"zwei", b"nothing", b"nothing"]


def test_tables_come_back_with_the_content_of_then(tables: Tables, tmp_path: Path) -> None:
    check_tables(tables)
    opkernel.save(tables, tmp_path / "model")
    (tmp_path / "words.txt").unlink()
    loaded = load(tmp_path / "model")
    check_tables(loaded)
    assert (loaded.count(np.array([5, 6])), loaded.count(np.array([6]))) == (2, 2)
    assert loaded(np.array([5, 6]))[1].tolist() == [[2, 3], [2, 2]]
    again = saved(loaded, tmp_path / "again")
    assert again(np.array([5, 6]))[1].tolist() == [[2, 3], [2, 2]]
    check_tables(load(tmp_path / "model"))


def test_tables_in_a_session(tables: Tables, tmp_path: Path) -> None:
    signatures = {"numbers": tables.__call__, "words": tables.index}
    opkernel.save(tables, tmp_path / "model", signatures=signatures)
    model = opkernel.load_as_session(tmp_path / "model")
    found = model.signatures["numbers"](k=np.array([1, 5]))
    assert found["output_0"].tolist() == [5, -1]
    assert found["output_1"].tolist() == [[0, 0], [1, 2]]
    assert model.signatures["words"](w=WORDS)["output_0"].tolist() == [2, 0, -1]


def test_a_table_in_branches_of_a_function(tmp_path: Path) -> None:
    module: Any = Module()
    module.table = lookup.StaticHashTable(
        lookup.KeyValueTensorInitializer(["a"], np.array([1.0])), -1
    )
    module.f = opkernel.function(
        lambda word, flag: opkernel.cond(
            flag,
            lambda: module.table.lookup(word),
            lambda: opkernel.constant(0.0, opkernel.float64),
        ),
        [TensorSpec([], opkernel.string), TensorSpec([], opkernel.bool)],
    )
    loaded = saved(module, tmp_path / "model")
    assert [loaded.f("a", True), loaded.f("b", True), loaded.f("a", False)] == [1, -1, 0]


def test_checkpoints_have_the_content_of_tables(tables: Tables, tmp_path: Path) -> None:
    path = opkernel.Checkpoint(model=tables).save(tmp_path / "ckpt")
    other = Tables(tmp_path / "words.txt")
    other.rows[0].insert([77], [[7, 7]])
    assert opkernel.Checkpoint(model=other).restore(path) == []
    check_tables(other)
    assert other.rows[0].size() == 1


def test_wrong_tables(tmp_path: Path) -> None:
    initializer = lookup.KeyValueTensorInitializer(["a", "a"], np.array([1, 2]))
    with pytest.raises(OpError, match="a"):
        lookup.StaticHashTable(initializer, -1)
    with pytest.raises(InvalidArgumentError, match="default_value of a table makes no int64"):
        lookup.MutableHashTable(opkernel.string, opkernel.int64, "text")
    with pytest.raises(OpError, match="missing"):
        lookup.StaticHashTable(
            lookup.TextFileInitializer(
                tmp_path / "missing", opkernel.string, -2, opkernel.int64, -1
            ),
            -1,
        )
    table = lookup.MutableHashTable(opkernel.string, opkernel.int64, 0)
    with pytest.raises(InvalidArgumentError, match="keys of a table makes no string"):
        table.lookup(np.array([1, 2]))
    made = opkernel.function(lambda: lookup.MutableHashTable(opkernel.string, opkernel.int64, 0))
    with pytest.raises(FailedPreconditionError, match="outside of functions"):
        made()


def test_what_cannot_be_saved_is_told_with_its_path(tmp_path: Path) -> None:
    handle = raw_ops.MutableHashTableV2(key_dtype=opkernel.string, value_dtype=opkernel.float32)
    module: Any = Module()
    module.f = opkernel.function(
        lambda x: raw_ops.LookupTableFindV2(
            table_handle=handle, keys=opkernel.constant("k"), default_value=x
        ),
        [TensorSpec([], opkernel.float32)],
    )
    with pytest.raises(UnimplementedError, match=r"Tables of `opkernel.lookup` can be saved"):
        opkernel.save(module, tmp_path / "model")
    table = lookup.MutableHashTable(opkernel.string, opkernel.float32, 0)
    other: Any = Module()
    other.parts = {"find": opkernel.function(table.lookup, [TensorSpec([None], opkernel.string)])}
    with pytest.raises(
        InvalidArgumentError, match=r"MutableHashTable_(.|\n)*make it(.|\n)*In 'parts/find' of"
    ):
        opkernel.save(other, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_saving_tables_again_gives_the_same_values(tables: Tables, tmp_path: Path) -> None:
    first: Any = Dense()
    first.tables = tables
    loaded = saved(first, tmp_path / "one")
    outer: Any = Module()
    outer.inner = loaded
    again = saved(outer, tmp_path / "two")
    check_tables(again.inner.tables)
    np.testing.assert_array_equal(again.inner(X), first(X))
