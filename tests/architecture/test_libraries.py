"""Optional libraries: each is asked for in its own rooms alone, and comes with the extra that messages name."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source_code import modules

from opkernel.libraries import EXTRA_OF

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {
    "PIL": {"ops"},
    "grpc": {"serving"},
    "hypothesis": {"testing"},
    "jax": {"xla"},
    "keras": {"keras"},
    "numba": {"providers", "testing"},
    "openvino": {"engines"},
    "prometheus_client": {"serving"},
    "pyarrow": {"distributed"},
    "ray": {"distributed"},
    "re2": {"ops"},
    "scipy": {"ops"},
    "simplejpeg": {"ops"},
    "starlette": {"serving"},
    "uvicorn": {"serving"},
}
"""The libraries, with the rooms that may ask for them."""


def asked_for() -> Iterator[tuple[str, str]]:
    """The libraries that modules ask for by name, each with the room of the module."""
    for name, module in modules().items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and re.match(
                r"(library|library_or_none|is_installed|check_installed|import_module)$",
                ast.unparse(node.func).rpartition(".")[2],
            ):
                for first in node.args[:1]:
                    library = ast.literal_eval(first) if isinstance(first, ast.Constant) else ""
                    if library.partition(".")[0] in ROOMS:
                        yield library.partition(".")[0], name.split(".")[1]


def test_a_library_is_asked_for_in_its_own_rooms_alone() -> None:
    found = set(asked_for())
    assert len(found) > 6
    assert [one for one in found if one[1] not in ROOMS[one[0]]] == []


def test_extras_bring_what_messages_say() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for library, extra in EXTRA_OF.values():
        packages = [re.split(r"[><=\[]", one)[0].lower() for one in extras[extra]]
        assert library.lower() in packages
    assert EXTRA_OF.keys() == ROOMS.keys()
