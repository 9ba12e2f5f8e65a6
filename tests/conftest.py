"""What all tests share: skipping by what is installed, and TensorFlow as a fixture."""

import gc
import importlib
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

# Whoever imports TensorFlow first: what only oneDNN computes has tests with recorded values.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
# Programs are compiled in each run.
os.environ.setdefault("OPKERNEL_CACHE", "off")

# A failure shows all frames.
os.environ.setdefault("OPKERNEL_TRACEBACK_FILTERING", "0")

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

# The same examples at every run, and no verdict about the speed of a busy machine.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# Hypothesis also tries the constants of all modules that are loaded, so that examples would depend on the
# tests that ran before in the process. No setting keeps it from that.
if hasattr(providers, "_local_constants"):
    _no_constants = providers._local_constants
    providers._get_local_constants = lambda: _no_constants

_REASONS_TO_SKIP = {
    "tensorflow": None
    if importlib.util.find_spec("tensorflow")
    else "TensorFlow is not installed (python3 dev.py tensorflow runs this)",
    "ray": None if importlib.util.find_spec("ray") else "Ray is not installed",
    "jax": None if importlib.util.find_spec("jax") else "JAX is not installed",
    "shared": None if SHARED.is_dir() else f"there is no conformance material at {SHARED}",
}


_FOLDERS = {
    "thorough": (
        "architecture", "cli", "conformance", "distributed", "endpoints", "engines", "ops", "optimization", "origins",
        "providers", "runtime", "serving", "test_architecture.py", "test_deep_texts.py", "test_registrations.py",
        "testing", "xla",
    ),
    "dependent": ("cli", "ops", "serving"),
}  # fmt: skip
"""The folders and files whose tests have a marker."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folders; skip what needs something that is absent, and say what."""
    for item in items:
        for marker, folders in _FOLDERS.items():
            if any(item.path.is_relative_to(ROOT / "tests" / folder) for folder in folders):
                item.add_marker(marker)
        for marker, reason in _REASONS_TO_SKIP.items():
            if reason is not None and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


_MODULE_OF = {"Pillow": "PIL", "google-re2": "re2"}
"""Libraries whose module is not called as they are."""
_NEEDS = re.compile(r"needs the library (\S+): pip install 'opkernel\[")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip a test where an op or an engine asks for a library that is not installed."""
    try:
        return (yield)
    except Exception as error:
        needed = _NEEDS.search(str(error))
        if needed and importlib.util.find_spec(_module_of(needed[1])) is None:
            pytest.skip(needed.string)
        raise


def _module_of(library: str) -> str:
    return _MODULE_OF.get(library, library.lower())


@pytest.fixture(autouse=True, scope="module")
def _what_a_module_leaves_is_collected_once() -> Iterator[None]:
    """Else each collection looks at millions of objects after some thousand tests.

    Whoever leaves an open file is told, and not the module that comes next.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _no_global_seed_is_left() -> Iterator[None]:
    """Else the random numbers of a module depend on those that ran before it."""
    yield
    seeds = sys.modules.get("opkernel.endpoints.global_seed")
    if seeds is not None:
        seeds._global.value = None


@pytest.fixture(scope="session")
def tf() -> ModuleType:
    """TensorFlow itself, without its start-up messages; for tests marked `tensorflow`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("tensorflow")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with recorded answers of TensorFlow; for tests marked `shared`."""
    return SHARED
