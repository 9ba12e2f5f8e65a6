"""What `import opkernel` gives, and what it leaves alone."""

import importlib
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import opkernel
from opkernel.types import DataType, dtype_names

ROOT = Path(__file__).resolve().parent.parent

VERBS = ["load_graph", "import_graph_def", "register_kernel", "register_op"]
CLASSES = ["DataType", "Graph", "InferenceContext", "Name", "OpKernel", "OpKernelConstruction"]
CLASSES += ["OpKernelContext", "Operation", "PartialTensorShape", "Session", "TensorShape"]

# Costly to import, or a back end that need not be there.
LEFT_ALONE = ["click", "google.protobuf.text_format", "jax", "opt_einsum", "PIL", "scipy"]


def loaded_after_import():
    code = "import opkernel, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize("name", [*VERBS, *CLASSES, "errors", "raw_ops"])
def test_the_names_users_write_are_public(name):
    assert name in opkernel.__all__
    assert hasattr(opkernel, name)


PACKAGES = [
    ".".join(stub.relative_to(ROOT / "src").parent.parts)
    for stub in sorted((ROOT / "src").rglob("__init__.pyi"))
    if stub.parent.name not in ("proto", "keras")  # the latter's class needs Keras
]


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_exported_exists(package):
    module = importlib.import_module(package)
    assert module.__all__
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


def public(module: ModuleType) -> list[str]:
    return [name for name in dir(module) if not name.startswith("__")]


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_shows_the_public_names_whatever_was_imported(package):
    module = importlib.import_module(package)
    assert public(module) == sorted(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_hides_an_exported_name(package):
    """The import of a module sets its name in its package, whatever the package exports under that name."""
    stub = ROOT / "src" / Path(*package.split(".")) / "__init__.pyi"
    exports = re.findall(
        r"^from (\S+) import (?:\(\n    )?\w+ as (\w+)", stub.read_text(), re.MULTILINE
    )
    hidden = [
        name
        for source, name in exports
        if source != package and importlib.util.find_spec(f"{package}.{name}")
    ]
    assert hidden == (["gradients"] if package == "opkernel" else [])  # its module can be called


ROOMS = [
    folder.name for folder in sorted((ROOT / "src" / "opkernel").iterdir())
    if (folder / "__init__.py").exists()
]  # fmt: skip


def test_all_rooms_are_there_after_a_bare_import():
    code = f"import opkernel; print(*[getattr(opkernel, room).__name__ for room in {ROOMS}])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [f"opkernel.{room}" for room in ROOMS]


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        ("opkernel", "Sesion", "Session"),
        ("opkernel.opdef", "regster_op", "register_op"),
        ("opkernel.raw_ops", "Matmul", "MatMul"),
        ("opkernel.proto", "GraphDeff", "GraphDef"),
    ],
)
def test_names_like_one_that_is_not_there_are_told_once(module, name, meant):
    code = f"import {module}; {module}.{name}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.splitlines()[-1]
    assert re.fullmatch(rf"AttributeError: .*'{name}'; perhaps you mean {meant}\b.*", last)
    assert "Did you mean" not in last


def test_importing_is_silent_and_loads_neither_ops_nor_back_ends():
    loaded = loaded_after_import()
    assert not loaded & set(LEFT_ALONE)
    topics = ("opkernel.ops.array", "opkernel.ops.math", "opkernel.ops.nn", "opkernel.ops.image")
    assert [module for module in loaded if module.startswith(topics)] == []


def test_the_installed_version_is_the_modules():
    try:
        installed = importlib.metadata.version("opkernel")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is on the path, not installed")
    assert installed == opkernel.__version__


@pytest.mark.parametrize("name", ["bool", "string", "float32", "bfloat16", "resource"])
def test_types_stand_under_the_names_of_the_python_api(name):
    assert getattr(opkernel, name).tf_name == name
    assert name in opkernel.__all__


def test_every_type_of_the_types_room_has_a_name():
    names = {name for name, value in vars(dtype_names).items() if isinstance(value, DataType)}
    names.remove("bool_")  # exported as `bool`
    assert names <= set(opkernel.__all__)


@pytest.mark.parametrize("name", ["DEFAULT", "CPU", "GPU", "TPU", "TPU_SYSTEM"])
def test_device_types_stand_under_the_names_of_types_h(name):
    assert getattr(opkernel, f"DEVICE_{name}") == name
    assert getattr(opkernel.types, f"DEVICE_{name}") == name
