"""Which plugins are found, in which order, and what they say of themselves."""

import os
import sys

import pytest
from tests.plugins.conftest import Plugins, op

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.plugins.discovery import find_plugins


def test_folders_come_in_their_order_then_what_is_installed(
    plugins: Plugins, tmp_path, monkeypatch
):
    for name in ("b", "a"):
        plugins.put(name, "")
    for name in ("z_installed", "y_installed"):
        plugins.install(name, "")
    later, plugins.folder = plugins.folder, tmp_path / "first"
    plugins.folder.mkdir()
    plugins.put("c", "")
    path = os.pathsep.join(["", str(plugins.folder), str(later)])
    monkeypatch.setenv("OPKERNEL_PLUGIN_PATH", path)
    assert [p.name for p in find_plugins()] == ["c", "a", "b", "y_installed", "z_installed"]


def test_what_plugins_state_is_read_without_running_them(plugins: Plugins):
    folder = plugins.put("in_folder", "raise SystemExit", api="1.3")
    plugins.install("installed_one", "raise SystemExit", keywords="tensors,opkernel-api=2.1,x")
    plugins.install("older", "raise SystemExit", keywords="tensors")
    found = {p.name: (p.version, p.api, p.found, p.error) for p in find_plugins()}
    assert found == {
        "in_folder": ("0.1", "1.3", str(folder), None),
        "installed_one": ("0.2", "2.1", "installed_one 0.2", None),
        "older": ("0.2", "", "older 0.2", None),
    }


def test_a_folder_on_the_path_may_be_a_plugin_itself(plugins: Plugins, monkeypatch):
    folder = plugins.put("one", "")
    monkeypatch.setenv("OPKERNEL_PLUGIN_PATH", str(folder))
    assert [p.name for p in find_plugins()] == ["one"]


def test_folders_without_a_plugin_toml_are_none(plugins: Plugins):
    (plugins.folder / "notes").mkdir()
    (plugins.folder / "plugin.toml.bak").write_text("")
    assert find_plugins() == []


def test_a_folder_that_is_not_there(plugins: Plugins, monkeypatch):
    monkeypatch.setenv("OPKERNEL_PLUGIN_PATH", str(plugins.folder / "nowhere"))
    (plugin,) = find_plugins()
    assert isinstance(plugin.error, NotFoundError)
    assert "nowhere" in plugin.problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name = ", "Invalid value"),
        ('version = "1"', "'name' must be a string"),
        ('name = "../up"\nversion = "1"\napi = "1.0"\nmodules = ["ops"]', "'../up' is no name"),
        ('name = "a.b"\nversion = "1"\napi = "1.0"\nmodules = ["ops"]', "'a.b' is no name"),
        ('name = "x"\nversion = "1"\napi = "1.0"', "'modules' must be a list"),
        ('name = "x"\nversion = "1"\napi = "1.0"\nmodules = "ops"', "'modules' must be a list"),
        ('name = "x"\nversion = "1"\napi = "1.0"\nmodules = ["..ops"]', "'..ops' is none"),
        ('name = "x"\nversion = "1"\napi = 1\nmodules = ["ops"]', "'api' must be a string"),
        (b"\xff", "can't decode"),
    ],
)
def test_a_wrong_plugin_toml(plugins: Plugins, text: str | bytes, problem: str):
    folder = plugins.put("wrong", "")
    content = text if isinstance(text, bytes) else text.encode()
    (folder / "plugin.toml").write_bytes(content)
    plugins.put("x_right", "")
    wrong, right = find_plugins()
    assert isinstance(wrong.error, InvalidArgumentError)
    assert problem in wrong.problem
    assert str(folder / "plugin.toml") in wrong.problem
    assert right.error is None


def test_an_entry_point_that_names_an_object(plugins: Plugins):
    plugins.install("objects", op("PluginObjects"))
    entry_points = plugins.site / "objects-0.2.dist-info" / "entry_points.txt"
    entry_points.write_text("[opkernel.plugins]\nobjects = objects:register\n")
    (plugin,) = find_plugins()
    assert "must name a module, not an object" in plugin.problem
    assert "objects" not in sys.modules


def test_a_distribution_whose_entry_points_cannot_be_read(plugins: Plugins):
    plugins.put("fine", "")
    plugins.install("damaged", "")
    (plugins.site / "damaged-0.2.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe")
    fine, damaged = find_plugins()
    assert (fine.name, fine.error) == ("fine", None)
    assert isinstance(damaged.error, UnicodeDecodeError)
