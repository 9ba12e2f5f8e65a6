"""Every slot of a room is filled with a thing of its type, and nothing else imports a room by its name."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from tests.architecture.source_code import PACKAGE, modules

from opkernel.data.saved_elements import StructureCoder
from opkernel.device.device_factory import DevicesOfType
from opkernel.errors import UnimplementedError
from opkernel.graph.inference.constant_values import ConstantEvaluator
from opkernel.opdef.core.op_lookup import OpCatalogue
from opkernel.registrations import Plugins
from opkernel.slots import NamedSlots, Slot
from opkernel.wiring import NAMED_SLOTS, SLOTS

PARAMETERS = {
    "builder of nodes": ["graph", "name", "request", "control_inputs"],
    "copy of a graph": ["graph", "memo"],
    "drawing of a graph": ["graph"],
    "edit of a graph": ["graph"],
    "full types of a graph": ["graph"],
    "functions of NumPy on tensors": ["name", "args", "kwargs"],
    "gradient of a call by name": ["op", "grads"],
    "gradient of a frame loop": ["loop", "grads"],
    "kernels of compilation devices": ["op", "device_type"],
    "operators of tensors": ["name", "operands"],
    "pickle of a graph": ["graph"],
    "run in the default session": ["graph", "fetches", "feed_dict"],
    "runner of a compiled function": ["function"],
    "runner of a function": ["function"],
    "shape refiner of a graph": ["graph", "functions"],
    "shapes of a graph": ["graph", "inputs", "update"],
    "text of an OpDef": ["op_def"],
    "values of constants": ["tensors", "known", "max_nodes", "device_of"],
}
"""The slots of functions, and their parameters."""

PROTOCOLS = {
    "catalogue of ops": OpCatalogue,
    "device type": DevicesOfType,
    "messages of structures": StructureCoder,
    "plugins": Plugins,
}
"""The slots of modules whose functions are called."""

REGISTERS = {
    "devices of the CPU", "engine", "kernel provider", "kernels", "kernels by extra",
    "optimization passes",
}  # fmt: skip
"""The slots of modules that register what they have."""


def declared() -> dict[str, type]:
    """The slots that modules make, by name, with their classes."""
    found: dict[str, type] = {}
    for module in modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                kind = {"Slot": Slot, "NamedSlots": NamedSlots}.get(node.func.id)
                if kind is not None:
                    assert isinstance(node.args[0], ast.Constant)
                    assert node.args[0].value not in found
                    found[str(node.args[0].value)] = kind
    return found


def things() -> Iterator[tuple[str, Any]]:
    """What fills the slots, by their names."""
    for name in SLOTS:
        yield name, Slot[Any](name).get()
    for kind in NAMED_SLOTS:
        slots = NamedSlots[Any](kind)
        for name in slots.names():
            yield kind, slots.get(name)


def functions_of(protocol: type) -> dict[str, list[str]]:
    """The parameters of a protocol's functions."""
    return {
        name: list(inspect.signature(function).parameters)[1:]
        for name, function in vars(protocol).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }


def test_the_wiring_fills_the_slots_that_there_are():
    assert declared() == dict.fromkeys(SLOTS, Slot) | dict.fromkeys(NAMED_SLOTS, NamedSlots)
    assert {*SLOTS, *NAMED_SLOTS} == PARAMETERS.keys() | PROTOCOLS.keys() | REGISTERS


@pytest.mark.jax
def test_every_slot_is_filled_with_a_thing_of_its_type():
    for name, thing in things():
        if name in PARAMETERS:
            assert list(inspect.signature(thing).parameters) == PARAMETERS[name], name
        else:
            assert isinstance(thing, ModuleType), name
        for function, parameters in functions_of(PROTOCOLS.get(name, object)).items():
            there = inspect.signature(getattr(thing, function)).parameters
            assert list(there) == parameters, function


def test_a_function_takes_what_the_protocol_of_its_slot_says():
    parameters = list(inspect.signature(ConstantEvaluator.__call__).parameters)[1:]
    assert parameters == PARAMETERS["values of constants"]


def test_a_thing_is_imported_when_it_is_asked_for():
    code = """if True:
        import sys
        from opkernel.slots import Slot
        plugins = Slot("plugins")
        assert plugins.if_loaded() is None
        assert "opkernel.plugins" not in sys.modules
        assert plugins.get() is sys.modules["opkernel.plugins.loading"]
        assert plugins.if_loaded() is plugins.get()
    """
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(PACKAGE.parent)}
    )


def test_a_name_that_the_wiring_does_not_have_is_none():
    assert NamedSlots[Any]("engine").get("steam") is None


def test_a_room_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(SLOTS, "drawing of a graph", "opkernel.paintings.page:html")
    with pytest.raises(UnimplementedError, match=r"no drawing of a graph: .* opkernel\.paintings"):
        Slot[Any]("drawing of a graph").get()


def test_the_fault_of_a_room_that_is_there_is_its_own(monkeypatch, tmp_path):
    (tmp_path / "faulty_room.py").write_text("import library_that_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(SLOTS, "drawing of a graph", "faulty_room")
    with pytest.raises(ModuleNotFoundError, match="library_that_nobody_has"):
        Slot[Any]("drawing of a graph").get()


def names_of_modules(tree: ast.AST) -> Iterator[str]:
    """The strings of a module, and the first parts of its f-strings, that name one of the package's modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            for string in ast.walk(node.args[0]):
                if isinstance(string, ast.Constant) and re.match(r"opkernel\b", str(string.value)):
                    yield str(string.value)


def test_no_module_but_the_wiring_imports_another_room_by_its_name():
    for name, module in modules().items():
        for imported in names_of_modules(module.tree):
            room = ".".join(name.split(".")[:2])
            assert f"{imported}.".startswith(f"{room}."), f"{name} imports {imported}"


def test_only_the_slots_import_the_wiring():
    text = "\n".join(p.read_text("utf-8") for p in PACKAGE.rglob("*.py") if p.name != "slots.py")
    assert "opkernel.wiring" not in text
    assert 'import_module(".' not in text
    assert importlib.import_module("opkernel.slots")._wiring().SLOTS is SLOTS
