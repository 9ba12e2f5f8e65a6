"""Modules may run again: Python forgets a module whose import was interrupted, and not what it has registered."""

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.decompile import decompile
from opkernel.errors import AlreadyExistsError
from opkernel.gradients import look_up_gradient
from opkernel.graph import Operation
from opkernel.libraries import library
from opkernel.registrations import OpRules, Registrations, declaring_site, registered_by
from opkernel.xla import XlaOpRegistry, register_xla_kernel

SOURCES = Path(opkernel.__file__).parent
MODULES = sorted(
    ".".join(["opkernel", *file.relative_to(SOURCES).with_suffix("").parts]).removesuffix(
        ".__init__"
    )
    for file in SOURCES.rglob("*.py")
    if file.name not in ("__main__.py", "tfsm_layer.py")  # the latter needs Keras
)

IMPORT_ALL_AGAIN = """
import importlib, json, logging, sys
from collections import Counter

told = []
logging.getLogger("opkernel").addHandler(logging.NullHandler())
logging.getLogger("opkernel").handle = lambda record: told.append(record.getMessage())

def registered():
    from opkernel.device import device_factory
    from opkernel.engines.openvino import op_rule
    from opkernel.gradients import registry as gradients
    from opkernel.kernel import global_kernel_registry, registered_providers
    from opkernel.opdef import global_op_registry
    from opkernel.optimization import optimize
    from opkernel.runtime.engines import engine
    from opkernel.runtime.program import executors
    from opkernel.types import variant_value
    from opkernel.xla.op_registry import global_xla_op_registry

    kernels = {"numpy": global_kernel_registry()}
    kernels |= {one.name: one.kernels for one in registered_providers()}
    of_xla = global_xla_op_registry().rules
    return {
        "ops": Counter(global_op_registry().owners().values()),
        "kernels": Counter(
            (name, one.owner, one.key) for name in kernels for one in kernels[name].registrations()
        ),
        "gradients": Counter(one.owner for one in gradients.gradient_sites().values()),
        "XLA": Counter((op, one.site.owner) for op in of_xla.names() for one in of_xla[op]),
        "passes": [one[:3] for one in optimize.optimization_passes()],
        "executors": executors.registered_executors(),
        "engines": engine._engines.names(),
        "providers": [one.name for one in registered_providers()],
        "devices": sorted(device_factory._factories),
        "rules": op_rule.rules().names(),
        "variants": sorted(variant_value._decoders),
    }

modules = sys.argv[1:]
for module in modules:
    importlib.import_module(module)
before, found = registered(), {}
for module in modules:
    known = sys.modules.pop(module)
    told.clear()
    try:
        importlib.import_module(module)
        found[module] = "".join(told)
    except Exception as error:
        found[module] = f"{type(error).__name__}: {error}"
    sys.modules[module] = known  # later modules are to have what the others have
    parent, _, name = module.rpartition(".")
    if parent:
        setattr(sys.modules[parent], name, known)
after = registered()
found["all"] = "".join(f"{what}: {before[what]} became {after[what]}" for what in before if before[what] != after[what])
print(json.dumps(found))
"""


PACKAGES = sorted({module.rpartition(".")[0] for module in MODULES})


@pytest.fixture(scope="module")
def faults() -> dict[str, str]:
    """What was wrong when each module was imported for the second time; nothing where all was well."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMPORT_ALL_AGAIN, *MODULES],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "OPKERNEL_PLUGIN_PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.jax
@pytest.mark.parametrize("package", PACKAGES)
def test_modules_may_be_imported_again(package: str, faults: dict[str, str]) -> None:
    modules = [module for module in MODULES if module.rpartition(".")[0] == package]
    assert {module: faults[module] for module in modules if faults[module]} == {}


@pytest.mark.jax
def test_what_is_registered_again_takes_the_place_of_what_was(faults: dict[str, str]) -> None:
    assert faults["all"] == ""


INTERRUPT_EACH_REGISTRATION = """
import importlib, sys
from opkernel.optimization import optimize

place, count = 0, 0
def interrupt(frame, event, argument):
    global count
    if frame.f_globals.get("__name__") == "opkernel.optimization.built_in":
        count += event == "line"
        if count > place:
            count = 0
            raise KeyboardInterrupt
        return interrupt

while True:
    sys.settrace(interrupt)
    try:
        importlib.import_module("opkernel.optimization.built_in")
        break
    except KeyboardInterrupt:
        place += 1
    finally:
        sys.settrace(None)
names = [one.name for one in optimize.optimization_passes()]
assert len(names) == len(set(names)) > 20
print(place)
"""


def test_an_import_that_was_interrupted_at_each_line_is_done_in_the_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT_EACH_REGISTRATION],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert int(done.stdout) > 25


def run_as(module: str, source: str, **names: Any) -> dict[str, Any]:
    """Run the code of a module; the module's names."""
    names["__name__"] = module
    exec(compile(textwrap.dedent(source), f"{module}.py", "exec"), names)
    return names


class TestRegistrations:
    @pytest.fixture
    def engines(self) -> Registrations[Any]:
        return Registrations("An engine")

    @pytest.fixture
    def run(self, engines: Registrations[Any]) -> Callable[[str, str], dict[str, Any]]:
        """Runs the code of a module, which may call `add`."""

        def add(name: str, thing: Any) -> None:
            engines.add(name, thing, declaring_site(sys._getframe(1)))

        return lambda module, source: run_as(module, source, add=add)

    def test_a_module_that_runs_again_registers_again(self, engines, run):
        for number in range(3):
            run("first", f"add('one', {number})")
        assert (engines["one"], engines.names()) == (2, ["one"])

    def test_so_do_its_functions(self, engines, run):
        for number in range(3):
            run("first", f"def f(): add('one', {number})")["f"]()
        assert engines["one"] == 2

    @pytest.mark.parametrize("module", ["second", "first.second"])
    def test_another_module_may_not(self, engines, run, module):
        run("first", "add('one', 1)")
        with pytest.raises(AlreadyExistsError, match="An engine 'one' is registered already"):
            run(module, "add('one', 2)")
        assert engines["one"] == 1

    def test_nor_may_another_function_of_the_module(self, engines, run):
        module = run("first", "def f(): add('one', 1)\ndef g(): add('one', 2)")
        module["f"]()
        with pytest.raises(AlreadyExistsError):
            module["g"]()
        assert engines["one"] == 1

    @pytest.mark.parametrize("source", ["add('one', 2)", "def f(): add('one', 2)\nf()\nf()"])
    def test_nor_may_one_run_at_two_places_or_twice(self, engines, run, source):
        with pytest.raises(AlreadyExistsError):
            run("first", f"add('one', 1)\n{source}")
        assert engines["one"] == 1

    def test_the_same_thing_may_be_registered_by_anybody(self, engines, run):
        for module in ("first", "second"):
            run(module, "add('one', print)")
        assert engines.things() == [print]


OUTSIDERS = {
    "op": """
        import opkernel
        from opkernel.opdef import unknown_shape
        opkernel.register_op("Relu", shape_fn=unknown_shape)
    """,
    "gradient": """
        import opkernel
        opkernel.register_gradient("Relu")(lambda op, grad: grad)
    """,
    "no gradient": """
        import opkernel
        opkernel.no_gradient("Relu")
    """,
    "pass": """
        import opkernel
        @opkernel.register_optimization(opkernel.Grouping.PRE_PLACEMENT, 1)
        def identities(editor): pass
    """,
    "executor": """
        from opkernel.runtime import register_executor
        register_executor("DATAFLOW", print)
    """,
    "provider": """
        import opkernel
        opkernel.register_provider(opkernel.KernelProvider("blas"))
    """,
    "device": """
        from opkernel.device.device_factory import DeviceFactory, register_device_factory
        class Factory(DeviceFactory):
            def create_devices(self, options): return []
        register_device_factory("CPU", Factory(), priority=60)
    """,
}


@pytest.mark.parametrize("what", [*OUTSIDERS])
def test_nobody_else_registers_what_opkernel_has(what: str) -> None:
    list(opkernel.optimization_passes())
    opkernel.kernel.registered_providers()
    for module in ("outsider", "opkernel.outsider"):
        with pytest.raises(AlreadyExistsError):
            run_as(module, OUTSIDERS[what])


def test_nobody_else_registers_an_engine_of_opkernel() -> None:
    engine = opkernel.engines.engine_named("openvino")
    with pytest.raises(AlreadyExistsError, match="'openvino' is registered already"):
        run_as(
            "outsider",
            "register(type(engine)())",
            register=opkernel.engines.register_engine,
            engine=engine,
        )


def test_two_places_of_one_run_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    source = """
        from opkernel import register_gradient, register_op
        from opkernel.opdef import unknown_shape

        register_op("RegisteredTwice", shape_fn=unknown_shape)
        register_op("RegisteredTwice", inputs=["x: float"], shape_fn=unknown_shape)
        register_gradient("RegisteredTwice")(lambda op, grad: grad)
        register_gradient("RegisteredTwice")(lambda op, grad: None)
    """
    run_as("registers_twice", source)
    assert [record.getMessage() for record in caplog.records] == [
        "Op RegisteredTwice is registered at registers_twice.py:6, and was at registers_twice.py:5: the last one counts",
        (
            "The gradient of RegisteredTwice is registered at registers_twice.py:8, and was at registers_twice.py:7: "
            "the last one counts"
        ),
    ]
    caplog.clear()
    run_as("registers_twice", source)  # another run
    assert len(caplog.records) == 2


@pytest.fixture
def text() -> Operation:
    """A node of an op that nothing but its kernel is registered for."""
    with opkernel.Graph().as_default():
        x = opkernel.raw_ops.Placeholder(dtype=opkernel.float32, shape=[2], name="x")
        return opkernel.raw_ops.AsString(input=x, name="text").op


def compile_with_xla(op: Operation) -> None:
    opkernel.function(jit_compile=True)(lambda x: opkernel.raw_ops.AsString(input=x))(np.ones(2))


def compile_with_openvino(op: Operation) -> None:
    refusal = opkernel.engines.engine_named("openvino").refusal(op)
    raise opkernel.errors.NotFoundError(f"It says: {refusal}")


def write_numpy(op: Operation) -> None:
    with op.graph.as_default():
        digamma = opkernel.raw_ops.Digamma(x=op.inputs[0])
    decompile([op.inputs[0]], [digamma], "A model", with_numpy_only=True)


def without_library(op: Operation) -> None:
    library("scipy.no_such_module", "MatrixSquareRoot")


MISSING = {
    "gradient": (lambda op: look_up_gradient("Bitcast"), "No gradient defined for op: Bitcast"),
    "XLA": (compile_with_xla, "no XLA rule for AsString"),
    "OpenVINO": (compile_with_openvino, "It says: no OpenVINO rule for AsString"),
    "NumPy": (write_numpy, "There is no source with NumPy alone for op Digamma"),
    "kernel": (
        without_library,
        "MatrixSquareRoot needs the library scipy: pip install 'opkernel[scipy]'",
    ),
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.jax] * (kind == "XLA")) for kind in MISSING]
)
def test_the_kind_of_rule_that_an_op_lacks_is_named(kind: str, text: Operation) -> None:
    ask, message = MISSING[kind]
    with pytest.raises(opkernel.errors.OpError, match=re.escape(message)):
        ask(text)


class TestOpRules:
    def test_the_rule_of_an_op_is_loaded_once(self):
        loaded: list[str] = []

        def load(op: str) -> None:
            loaded.append(op)
            if op == "Relu":
                rules.add(op, 1, declaring_site(sys._getframe()))

        rules = OpRules[int]("test", load)
        assert rules.names() == loaded == []
        assert [rules.find(op) for op in ("Relu", "Where", "Relu", "Where")] == [1, None, 1, None]
        assert (rules.names(), loaded) == (["Relu"], ["Relu", "Where"])

    @pytest.mark.parametrize(
        ("options", "message"),
        [([], "no test rule for Where"), (["{op} lacks a {kind}"], "Where lacks a test")],
    )
    def test_an_op_without_one_is_named_with_the_kind(self, options, message):
        assert OpRules[int]("test", print, *options).missing("Where") == message

    @pytest.mark.jax
    def test_kernels_for_xla_are_taken_back_with_their_module(self):
        """As where a plugin could not be loaded."""
        registry = XlaOpRegistry(opkernel.kernel.KernelRegistry())
        registry.register_backend("XLA_CPU_JIT", [opkernel.float32])
        source = "verb('Relu', types={'T': [dtype]}, registry=registry)(lambda features: features)"
        names = {"verb": register_xla_kernel, "registry": registry}
        run_as("earlier_kernels", source, dtype=opkernel.float32, **names)
        run_as("later_kernels", source, dtype=opkernel.bfloat16, **names)
        assert len(registry.kernels.registrations_for("Relu")) == 2
        for owner, left in (("later_kernels", 1), ("earlier_kernels", 0)):
            ((rules, name),) = registered_by(owner.__eq__)
            rules.remove(name)
            assert len(registry.registrations("Relu")) == left
            assert len(registry.kernels.registrations_for("Relu")) == left


REGISTERS_TWICE_AND_FOR_NO_OP = """
import opkernel
from opkernel.opdef import unknown_shape

for types in (["float"], ["float"], ["float", "int32"]):
    inputs = [f"x{i}: {one}" for i, one in enumerate(types)]
    opkernel.register_op("TwiceInTests", inputs=inputs, outputs=["y: float"], shape_fn=unknown_shape)
opkernel.register_kernel("TwiceInTest", device="CPU")(lambda x: x)
opkernel.register_gradient("TwiceInTest", "GivenByNodes")(lambda op, grad: grad)
with opkernel.Graph().as_default() as graph, graph.gradient_override_map({"Neg": "GivenByNodes"}):
    x = opkernel.placeholder(opkernel.float32)
    opkernel.gradients(-x, [x])
"""


def test_the_end_of_the_process_tells_what_was_registered_for_no_op(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(REGISTERS_TWICE_AND_FOR_NO_OP)
    environment = os.environ | {"PYTHONPATH": str(SOURCES.parent)}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=True
    )
    lost = "and there is no such op; perhaps you mean TwiceInTests"
    second, kernel, gradient = done.stderr.splitlines()
    assert second.startswith(f"Op TwiceInTests is registered at {script}:7, and was at {script}:7")
    assert kernel.startswith(f"The kernel of 'TwiceInTest' is registered at {script}:8, {lost}")
    assert gradient.startswith(f"The gradient of 'TwiceInTest' is registered at {script}:9, {lost}")
