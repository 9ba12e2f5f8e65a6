import functools
import importlib
import textwrap
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from opkernel.device.device_factory import (
    device_factory,
    register_device_factory,
    unregister_device_factory,
)
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    KernelContract,
    KernelRegistry,
    Name,
    OpKernel,
    create_op_kernel,
    global_kernel_registry,
    register_kernel,
)
from opkernel.opdef import (
    OpRegistry,
    global_op_registry,
    register_op,
    unchanged_shape,
    unknown_shape,
)
from opkernel.proto import AttrValue, NodeDef
from opkernel.runtime import CPU
from opkernel.types import DataType, float32


@pytest.fixture
def ops():
    registry = OpRegistry()
    register_op(
        "Twice",
        inputs=["x: T"],
        outputs=["y: T"],
        attrs=["T: {float, int32}", "by: int = 2"],
        shape_fn=unchanged_shape,
        registry=registry,
    )
    return registry


@pytest.fixture
def kernels():
    return KernelRegistry()


class Twice(OpKernel):
    made = 0

    def __init__(self, construction):
        super().__init__(construction)
        Twice.made += 1

    def compute(self, ctx):
        ctx.set_output(0, ctx.input(0) * 2)


def created(ops, kernels, dtype=DataType.DT_FLOAT):
    attrs = {"T": AttrValue(type=dtype), "by": AttrValue(i=2)}
    node = NodeDef(name="n", op="Twice", input=["x"], attr=attrs)
    return create_op_kernel(CPU, node, op_registry=ops, registry=kernels)


def test_a_class_by_a_chain(ops, kernels):
    chain = Name("Twice").device("CPU").type_constraint("T", float32).host_memory("x").priority(1)
    assert register_kernel(chain, registry=kernels)(Twice) is Twice
    (registered,) = kernels.registrations()
    assert registered.class_name == "Twice"
    assert registered.owner == __name__
    assert registered.kernel_def == chain.build()
    before = Twice.made
    assert isinstance(created(ops, kernels), Twice)
    assert Twice.made == before + 1


def test_a_chain_and_keywords_say_the_same(kernels):
    register_kernel(
        Name("Twice")
        .device("CPU")
        .type_constraint("T", float32)
        .attr_constraint("by", 2)
        .host_memory("x")
        .label("l")
        .priority(1),
        registry=kernels,
    )(Twice)
    register_kernel(
        "Twice",
        device="CPU",
        types={"T": float32},
        attrs={"by": 2},
        host_memory=["x"],
        label="l",
        priority=1,
        registry=(other := KernelRegistry()),
    )(Twice)
    assert kernels.registrations()[0].kernel_def == other.registrations()[0].kernel_def


def test_several_ops_have_one_kernel(kernels):
    register_kernel("Twice", "TwiceV2", device="CPU", types={"T": float32}, registry=kernels)(Twice)
    found = kernels.registrations()
    assert sorted(one.kernel_def.op for one in found) == ["Twice", "TwiceV2"]
    assert {one.kernel for one in found} == {Twice}
    assert {one.kernel_def.constraint[0].name for one in found} == {"T"}


def test_a_chain_with_a_function(ops, kernels):
    @register_kernel(Name("Twice").device("CPU"), registry=kernels, op_registry=ops)
    def twice(x, *, by):
        return x * by

    assert created(ops, kernels).function(np.float32(3)) == 6
    assert twice(1, by=4) == 4


def test_a_factory_makes_kernels_when_they_are_needed(ops, kernels):
    class Factory:
        def __init__(self):
            self.made = []

        def create(self, construction):
            self.made.append(construction.node_def.name)
            return Twice(construction)

    factory = Factory()
    register_kernel(Name("Twice").device("CPU"), registry=kernels)(factory)
    (registered,) = kernels.registrations()
    assert registered.class_name.endswith("Factory")
    assert registered.owner == __name__
    assert factory.made == []
    assert isinstance(created(ops, kernels), Twice)
    assert factory.made == ["n"]


def test_functions_are_checked_against_the_op(ops, kernels):
    with pytest.raises(InvalidArgumentError, match="does not fit the op Twice"):

        @register_kernel(Name("Twice").device("CPU"), registry=kernels, op_registry=ops)
        def twice(x, y):
            return x

    assert kernels.registrations() == []


def test_a_function_that_does_not_fit_one_of_several_ops_is_registered_for_none(ops, kernels):
    with pytest.raises(InvalidArgumentError, match="does not fit the op Twice"):

        @register_kernel("NoOpOfAnybody", "Twice", device="CPU", registry=kernels, op_registry=ops)
        def twice(x, y):
            return x

    assert kernels.registrations() == []


@pytest.mark.parametrize(
    "keywords",
    [
        {"device": "CPU"},
        {"types": {"T": float32}},
        {"attrs": {"by": 2}},
        {"host_memory": ["x"]},
        {"label": "l"},
        {"priority": 1},
    ],
)
def test_a_declaration_is_given_one_way(keywords, kernels):
    with pytest.raises(TypeError, match="not both"):
        register_kernel(Name("Twice").device("CPU"), registry=kernels, **keywords)


@pytest.mark.parametrize("op", ["Twice", Name("Twice")])
def test_a_device_is_needed(op, kernels):
    with pytest.raises(TypeError, match="the kernel of Twice lacks a device"):
        register_kernel(op, registry=kernels)


def test_what_is_no_kernel_is_refused(kernels):
    with pytest.raises(TypeError, match="a kernel of Twice must be callable, not 5"):
        register_kernel("Twice", device="CPU", registry=kernels)(5)  # type: ignore[type-var]
    assert kernels.registrations() == []


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"types": [float32]}, "Twice: types must be a dict by attr, such as {'T': ...}, not ["),
        ({"attrs": "by"}, "Twice: attrs must be a dict by attr, such as {'T': ...}, not 'by'"),
        (
            {"host_memory": "x"},
            "Twice: host_memory must be a list of arguments, not the string 'x'; write ['x']",
        ),
    ],
)
def test_keywords_of_another_kind_are_refused(keywords, message, kernels):
    with pytest.raises(TypeError) as raised:
        register_kernel("Twice", device="CPU", registry=kernels, **keywords)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("op", [None, 5, Twice])
def test_a_kernel_is_for_an_op_or_its_name(op, kernels):
    with pytest.raises(TypeError) as raised:
        register_kernel(op, device="CPU", registry=kernels)
    assert str(raised.value) == (
        f"register_kernel takes an op or its name, not {op!r}; "
        'write @register_kernel("Twice", device="CPU")'
    )


def test_a_class_that_computes_derives_from_op_kernel(kernels):
    class Plain:
        def compute(self, ctx):
            pass

    with pytest.raises(
        TypeError, match=r"Plain, the kernel of Twice, must be a class derived from"
    ):
        register_kernel("Twice", device="CPU", registry=kernels)(Plain)
    assert kernels.registrations() == []


def test_an_object_that_is_called_may_have_a_method_compute(ops, kernels):
    class Doubles:
        def compute(self, x):
            return x * 2

        def __call__(self, x):
            return self.compute(x)

    register_kernel("Twice", device="CPU", registry=kernels, op_registry=ops)(Doubles())
    assert created(ops, kernels).function(np.ones(2, np.float32)).tolist() == [2, 2]


def test_system_kernels_are_marked(kernels):
    register_kernel("Twice", device="CPU", system=True, registry=kernels)(Twice)
    assert kernels.registrations()[0].is_system


def test_registering_again_replaces(ops, kernels):
    for _ in range(2):  # as a cell that is run twice: each time another function of this name

        @register_kernel("Twice", device="CPU", registry=kernels, op_registry=ops)
        def twice(x):
            return x * 2

        register_kernel("Twice", device="GPU", registry=kernels, op_registry=ops)(np.negative)

    assert [one.class_name for one in kernels.registrations()] == ["negative", twice.__qualname__]


def test_the_owner_is_the_module_that_registers(ops, kernels):
    register_kernel("Twice", device="CPU", registry=kernels, op_registry=ops)(np.negative)
    assert kernels.registrations()[0].owner == __name__


def test_one_function_for_several_ops_and_types(ops, kernels):
    def passed_on(x):
        return x

    for dtype in (DataType.DT_FLOAT, DataType.DT_INT32):
        register_kernel(
            "Twice", device="CPU", types={"T": dtype}, registry=kernels, op_registry=ops
        )(passed_on)
    assert len(kernels.registrations()) == 2
    assert created(ops, kernels, DataType.DT_INT32).function(np.int32(5)) == 5


class TestTwoKernelsOfOneModule:
    """One run of a module that registers two kernels means both; a run after it replaces them."""

    @pytest.fixture
    def run(self, ops, kernels):
        """Runs the source of a module, or of a notebook's cell; the names of the kernels there are."""
        namespace = {
            "__name__": "my_ops",
            "OpKernel": OpKernel,
            "np": np,
            "ops": ops,
            "kernel": functools.partial(
                register_kernel, "Twice", registry=kernels, op_registry=ops
            ),
        }

        def run(source: str, file: str = "my_ops.py") -> list[str]:
            exec(compile(textwrap.dedent(source), file, "exec"), namespace)
            return [one.class_name for one in kernels.registrations()]

        return run

    A = """
        @kernel(device="CPU")
        def a(x):
            return x + x
        """
    B = A.replace("def a", "def b")

    def test_both_stay_and_a_node_cannot_choose(self, run, ops, kernels):
        assert run(self.A + self.B) == ["b", "a"]
        with pytest.raises(InvalidArgumentError) as error:
            created(ops, kernels)
        message = str(error.value)
        assert "Multiple OpKernel registrations match NodeDef at the same priority" in message
        assert "b (module my_ops, my_ops.py:6) and a (module my_ops, my_ops.py:2)" in message
        assert message.endswith("give one of them a higher priority=, other types= or a label=")

    def test_two_of_one_name_are_two(self, run):
        assert run(self.A + self.A) == ["a", "a"]
        assert run(self.A.replace('"CPU"', '"CPU", priority=1')) == ["a"]

    def test_functions_that_a_loop_registers_are_two(self, run):
        assert run("for f in (np.negative, np.abs): kernel(device='CPU')(f)") == [
            "absolute",
            "negative",
        ]
        loop = "for f in (lambda x: x, lambda x: -x): kernel(device='GPU')(f)"
        assert run(loop).count("<lambda>") == 2

    def test_a_function_that_is_called_while_the_module_runs_belongs_to_the_run(self, run):
        assert run(f"def main():{textwrap.indent(self.A + self.B, '    ')}\nmain()") == [
            "main.<locals>.b",
            "main.<locals>.a",
        ]

    def test_run_again_they_replace_what_they_were(self, run):
        assert run(self.A + self.B) == ["b", "a"]
        assert run("\n\n" + self.A) == ["a"]  # shifted, as by an edit before a reload
        assert run(self.B, "<ipython-input-2>") == ["b"]

    def test_the_same_function_twice_is_one(self, run):
        assert run("def f(x): return x\nkernel(device='CPU')(f)\nkernel(device='CPU')(f)") == ["f"]

    def test_an_op_that_is_declared_anew_gets_new_kernels(self, run, ops):
        declared = """
        from opkernel.opdef import register_op, unchanged_shape
        register_op("Twice", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape,
                    registry=ops)
        """
        ops.unregister("Twice")
        assert run(declared + self.A + declared + self.B) == ["b"]

    def test_a_reloaded_module_replaces_its_kernels(self, tmp_path: Path, monkeypatch):
        source = """
import opkernel
from opkernel.opdef import unchanged_shape
op = opkernel.register_op("ReloadedInTests", inputs=["x: float"], outputs=["y: float"],
                          shape_fn=unchanged_shape)
@opkernel.register_kernel(op, device="CPU")
def first(x):
    return x
"""
        (tmp_path / "reloaded_ops.py").write_text(source)
        monkeypatch.syspath_prepend(str(tmp_path))
        module = importlib.import_module("reloaded_ops")
        edited = source.replace("import opkernel\n", "import opkernel\n# A comment.\n", 1)
        (tmp_path / "reloaded_ops.py").write_text(edited.replace("first", "renamed"))
        importlib.reload(module)
        names = [
            r.class_name for r in global_kernel_registry().registrations_for("ReloadedInTests")
        ]
        assert names == ["renamed"]


class TestAgainstTheOp:
    """The later of an op and its kernel is refused where they do not fit."""

    WRONG: ClassVar = [
        ({"types": {"U": float32}}, "constraint on attr 'U' not in OpDef.*the attrs: T, by"),
        ({"types": {"T": DataType.DT_STRING}}, "none of which the op allows"),
        ({"attrs": {"by": "two"}}, "'by' of type 'int' with the values"),
        ({"host_memory": ["z"]}, "HostMemory arg 'z' not found.*inputs and outputs: x, y"),
    ]

    @pytest.mark.parametrize(("declared", "message"), WRONG)
    @pytest.mark.parametrize(
        "contract", [KernelContract(), KernelContract(outputs_as_declared=True)]
    )
    def test_the_kernel_comes_later(self, ops, kernels, declared, message, contract):
        with pytest.raises(InvalidArgumentError, match=message):
            register_kernel(
                "Twice",
                device="CPU",
                registry=kernels,
                op_registry=ops,
                contract=contract,
                **declared,
            )
        assert kernels.registrations() == []

    @pytest.mark.parametrize(("declared", "message"), WRONG)
    def test_the_op_comes_later(self, declared, message):
        def declare():
            register_op(
                "LateInTests",
                inputs=["x: T"],
                outputs=["y: T"],
                attrs=["T: {float, int32}", "by: int = 2"],
                shape_fn=unchanged_shape,
            )

        register_kernel("LateInTests", device="CPU", **declared)(Twice)
        try:
            with pytest.raises(InvalidArgumentError, match=message):
                declare()
            assert not global_op_registry().has("LateInTests")
            register_kernel("LateInTests", device="CPU")(Twice)  # by its name it replaces the other
            if "types" not in declared and "attrs" not in declared:
                declare()
        finally:
            for one in global_kernel_registry().registrations_for("LateInTests"):
                global_kernel_registry().unregister(one)
            if global_op_registry().has("LateInTests"):
                global_op_registry().unregister("LateInTests")

    def test_an_op_that_is_edited_leaves_its_kernels_to_be_edited_after_it(self):
        def declare(attr):
            register_op(
                "EditedAfterwardsInTests",
                inputs=[f"x: {attr}"],
                attrs=[f"{attr}: type"],
                shape_fn=unknown_shape,
            )

        declare("T")
        register_kernel("EditedAfterwardsInTests", device="CPU", types={"T": float32})(Twice)
        declare("U")
        register_kernel("EditedAfterwardsInTests", device="CPU", types={"U": float32})(Twice)


@pytest.mark.parametrize(
    ("device", "hint"),
    [
        ("cpu", "perhaps you mean 'CPU'"),
        ("CPU:0", "known are CPU, DEFAULT, GPU, TPU"),
        ("NPU", "register a type of your own with register_device_factory"),
    ],
)
def test_a_device_that_nothing_makes_is_refused(kernels, device, hint):
    with pytest.raises(
        InvalidArgumentError, match=f"the kernel of Twice is for .* '{device}'.*{hint}"
    ):
        register_kernel("Twice", device=device, registry=kernels)


def test_devices_that_a_factory_makes_and_those_of_tensorflow_are_known(kernels):
    register_device_factory("KNOWN_IN_TESTS", device_factory("CPU"))
    try:
        for device in ("KNOWN_IN_TESTS", "GPU", "TPU", "XLA_CPU_JIT", "DEFAULT"):
            register_kernel("Twice", device=device, registry=kernels)(Twice)
    finally:
        unregister_device_factory("KNOWN_IN_TESTS")
    assert len(kernels.registrations()) == 5
