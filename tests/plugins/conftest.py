"""Plugins in folders and as installed distributions, forgotten after each test."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from opkernel.plugins import Contents, contents_of, load_plugins, loading
from opkernel.plugins.contents import remove_contents

NOTHING = Contents(*[frozenset()] * 6)

OP = """
import opkernel
from opkernel.opdef.common_shapes import unchanged_shape

{name} = opkernel.register_op(
    "{name}", inputs=["x: T"], outputs=["y: T"], attrs=["T: {{float, int32}}"],
    shape_fn=unchanged_shape,
)

@opkernel.register_kernel({name}, device="CPU")
def kernel(x):
    return x + x
"""


def op(name: str) -> str:
    """The source of a module with an op that doubles its input."""
    return OP.format(name=name)


class Plugins:
    """Makes plugins in a folder of `OPKERNEL_PLUGIN_PATH` and in one of `sys.path`."""

    def __init__(self, folder: Path, site: Path) -> None:
        self.folder = folder
        self.site = site

    def put(self, name: str, source: str, api: str | None = "1.0", **modules: str) -> Path:
        """A folder with a plugin whose module `ops` has this source."""
        folder = self.folder / name
        folder.mkdir()
        stated = {"name": name, "version": "0.1", "api": api}
        lines = [f'{key} = "{value}"' for key, value in stated.items() if value is not None]
        (folder / "plugin.toml").write_text("\n".join([*lines, 'modules = ["ops"]']))
        for module, text in {"ops": source, **modules}.items():
            (folder / f"{module}.py").write_text(dedent(text))
        return folder

    def install(self, name: str, source: str, keywords: str = "opkernel-api=1.0") -> None:
        """A distribution with a module of that name as an entry point."""
        (self.site / f"{name}.py").write_text(dedent(source))
        metadata = self.site / f"{name}-0.2.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.2\nKeywords: {keywords}\n"
        )
        (metadata / "entry_points.txt").write_text(f"[opkernel.plugins]\n{name} = {name}\n")


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    made = Plugins(tmp_path / "plugins", tmp_path / "site")
    made.folder.mkdir()
    made.site.mkdir()
    monkeypatch.setenv("OPKERNEL_PLUGIN_PATH", str(made.folder))
    monkeypatch.syspath_prepend(str(made.site))
    monkeypatch.setattr(loading, "_found", None)
    monkeypatch.setattr(loading, "_explicit", [])
    packages = {"opkernel_plugins"} & set(sys.modules)
    assert not packages, "a test left plugins behind"
    yield made
    for plugin in load_plugins():
        remove_contents(plugin, but=NOTHING)
        assert not contents_of(plugin).ops
    sys.modules.pop("opkernel_plugins", None)
