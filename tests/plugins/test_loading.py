"""Plugins are loaded when something is missing, and what is wrong with one stays with it."""

import importlib
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.plugins.conftest import Plugins, op

import opkernel
from opkernel.device.device_factory import device_factory, device_types
from opkernel.device.local_device import CpuFactory
from opkernel.engines import registered_engines
from opkernel.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from opkernel.gradients.registry import has_gradient_entry
from opkernel.kernel import choose_providers, get_registered_kernels_for_op, registered_providers
from opkernel.opdef import global_op_registry
from opkernel.optimization import optimization_passes
from opkernel.plugins import contents_of, load_plugins

SOURCES = Path(__file__).resolve().parents[2] / "src"
GPU_KERNEL = """
import opkernel
opkernel.register_kernel("MatMul", device="TPU", types={"T": opkernel.float32})(
    lambda a, b: a @ b
)
"""

SILENT = (
    "Plugin 'risky_silent' does not say which version of opkernel's API it was built for; "
    "this opkernel has version 1.0"
)
RISKY = "Plugin 'risky' {} opkernel's API; this opkernel has version 1.0"


def problem_of(name: str) -> str:
    (found,) = [plugin for plugin in load_plugins() if plugin.name == name]
    return found.problem


def knows(name: str) -> bool:
    try:
        global_op_registry().look_up(name)
    except NotFoundError:
        return False
    return True


def run(code: str, plugins: Plugins) -> str:
    """What a process of its own prints, with the same plugins."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{plugins.site}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


BROKEN = {
    "syntax": "def",
    "raises": "raise ValueError('no luck')",
    "exits": "import sys; sys.exit(3)",
    "raises_any": "raise BaseException('no luck')",
    "raises_own": "class Own(BaseException): pass\nraise Own",
    "ends": "raise GeneratorExit",
    "without_text": """
class Silent(Exception):
    def __str__(self):
        raise ValueError
raise Silent
""",
    "lacks": "import a_module_that_nobody_has",
    "spec": op("PluginBadSpec").replace("x: T", "x:: T"),
}


class TestLazily:
    def test_an_op_is_found_in_a_folder_and_in_an_installed_package(self, plugins: Plugins):
        plugins.put("doubles", op("PluginInFolder"))
        plugins.install("plugin_installed", op("PluginInstalled"))
        assert opkernel.raw_ops.PluginInFolder(x=21) == 42
        assert opkernel.raw_ops.PluginInstalled(x=[1.5]).tolist() == [3.0]

    def test_what_is_known_loads_no_plugin(self, plugins: Plugins):
        plugins.put("loud", "print('loaded')")
        code = """
import sys, opkernel
print(opkernel.raw_ops.AddV2(x=1, y=2))
graph = opkernel.Graph()
with graph.as_default():
    x = graph.create_op("Placeholder", attrs={"dtype": opkernel.float32}).outputs[0]
    y = graph.create_op("MatMul", [x, x]).outputs[0]
print(opkernel.Session(graph).run(y, {x: [[2.0]]}))
print([m for m in sys.modules if m in ("opkernel.plugins", "importlib.metadata")])
try:
    opkernel.raw_ops.NobodyHasThis
except AttributeError:
    print("missing")
"""
        assert run(code, plugins).splitlines() == ["3", "[[4.]]", "[]", "loaded", "missing"]

    def test_a_kernel_that_nobody_has_loads_them(self, plugins: Plugins):
        plugins.put("device", GPU_KERNEL)
        code = """
from opkernel.kernel import find_kernel_def
from opkernel.opdef import NodeDefBuilder, fake_input
builder = NodeDefBuilder("m", "MatMul").attr("T", 1)
node = builder.input(fake_input()).input(fake_input()).finalize()
print(find_kernel_def("CPU", node).device_type)
print(find_kernel_def("TPU", node).device_type)
"""
        assert run(code, plugins).split() == ["CPU", "TPU"]

    def test_who_lists_all_ops_or_the_kernels_of_one_sees_theirs(self, plugins: Plugins):
        plugins.put("listed", op("PluginListed") + GPU_KERNEL)
        assert "PluginListed" in global_op_registry().names()
        kernels = get_registered_kernels_for_op("MatMul").kernel
        assert "TPU" in {kernel.device_type for kernel in kernels}
        (plugin,) = load_plugins()
        assert contents_of(plugin).ops == {"PluginListed"}
        assert len(contents_of(plugin).kernels) == 2

    def test_modules_of_a_folder_import_each_other(self, plugins: Plugins):
        plugins.put("one", "from . import shared", shared=op("PluginSharedOne"))
        plugins.put("two", "from .shared import *", shared=op("PluginSharedTwo"))
        assert knows("PluginSharedOne")
        assert knows("PluginSharedTwo")
        assert "shared" not in sys.modules


class TestApiVersion:
    @pytest.mark.parametrize("api", ["1.0", "1"])
    def test_a_safe_one(self, plugins: Plugins, api: str):
        plugins.put("safe", op("PluginSafe"), api=api)
        assert knows("PluginSafe")

    @pytest.mark.parametrize("api", ["2.0", "0.9", "1.1"])
    def test_another_is_refused_before_it_runs(self, plugins: Plugins, api: str):
        plugins.put("unsafe", op("PluginUnsafe"), api=api)
        assert not knows("PluginUnsafe")
        assert problem_of("unsafe").startswith(
            f"FailedPreconditionError: Plugin 'unsafe' was built for version {api} of opkernel's "
            "API; this opkernel has version 1.0"
        )
        assert "opkernel_plugins.unsafe" not in sys.modules

    def test_an_installed_one_that_says_nothing_is_refused(self, plugins: Plugins):
        plugins.install("plugin_silent", op("PluginSilent"), keywords="")
        assert not knows("PluginSilent")
        assert "does not say which version" in problem_of("plugin_silent")

    def test_a_folder_that_says_nothing_is_refused(self, plugins: Plugins):
        plugins.put("silent", op("PluginSilent"), api=None)
        assert not knows("PluginSilent")
        assert "does not say which version" in problem_of("silent")

    def test_what_is_no_version_is_refused(self, plugins: Plugins):
        plugins.put("odd", op("PluginOdd"), api="one")
        assert "'one' is no version" in problem_of("odd")

    def test_the_user_may_take_the_risk(self, plugins: Plugins, monkeypatch, caplog):
        monkeypatch.setenv("OPKERNEL_LOAD_UNSAFE_PLUGINS", "1")
        plugins.put("risky", op("PluginRisky"), api="2.0")
        plugins.put("risky_silent", op("PluginRiskySilent"), api=None)
        plugins.put("risky_odd", op("PluginRiskyOdd"), api="one")
        plugins.put("safe", op("PluginSafe"))
        with caplog.at_level(logging.WARNING):
            for name in ("PluginRisky", "PluginRiskySilent", "PluginRiskyOdd", "PluginSafe"):
                assert knows(name)
        because = "because OPKERNEL_LOAD_UNSAFE_PLUGINS=1 is set: "
        assert sorted(record.message.partition(because)[::2] for record in caplog.records) == [
            ("Loading UNSAFE library 'risky' ", RISKY.format("was built for version 2.0 of")),
            ("Loading UNSAFE library 'risky_odd' ", "'one' is no version of an API, such as '1.0'"),
            ("Loading UNSAFE library 'risky_silent' ", SILENT),
        ]


class TestBrokenOnes:
    @pytest.mark.parametrize("name", BROKEN)
    def test_they_break_nothing_else(self, plugins: Plugins, name: str, caplog):
        plugins.put("a_before", op("PluginBefore"))
        plugins.put(name, BROKEN[name])
        plugins.put("z_after", op("PluginAfter"))
        with caplog.at_level(logging.WARNING):
            assert knows("PluginBefore")
            assert knows("PluginAfter")
            assert not knows("PluginBadSpec")
        assert f"Plugin '{name}' is not loaded" in caplog.text
        names = {op_def.name for op_def in global_op_registry().get_registered_ops()}
        assert {"PluginBefore", "PluginAfter", "MatMul"} <= names

    @pytest.mark.parametrize("name", ["KeyboardInterrupt", "opkernel.errors.TimeIsUp"])
    def test_an_interrupt_is_not_theirs(self, plugins: Plugins, name: str):
        """Which comes from outside while they are loaded; they are loaded another time."""
        plugins.put("slow", f"import opkernel, os\nif 'INTERRUPT' in os.environ:\n    raise {name}")
        plugins.put("z_after", op("PluginAfter"))
        code = f"""
import os, opkernel
os.environ["INTERRUPT"] = "1"
try:
    opkernel.raw_ops.PluginAfter
except {name}:
    del os.environ["INTERRUPT"]
    print(opkernel.raw_ops.PluginAfter(x=1))
"""
        assert run(code, plugins) == "2\n"

    def test_the_error_for_an_op_that_may_be_theirs_names_them(self, plugins: Plugins):
        plugins.put("exits", BROKEN["exits"])
        plugins.put("well", op("PluginWell"))
        with pytest.raises(NotFoundError, match="perhaps what has them: plugin 'exits' \\("):
            global_op_registry().look_up_op_def("PluginNobodyHas")

    def test_the_error_tells_the_line(self, plugins: Plugins):
        folder = plugins.put("raises", "x = 1\nraise ValueError('no luck')")
        assert problem_of("raises") == f"ValueError: no luck ({folder / 'ops.py'}, line 2)"

    def test_importing_opkernel_needs_no_plugin_to_be_well(self, plugins: Plugins):
        plugins.put("raises", BROKEN["raises"])
        assert run("import opkernel; print(opkernel.raw_ops.Neg(x=1))", plugins) == "-1\n"

    def test_nothing_of_them_stays(self, plugins: Plugins):
        broken = op("PluginHalf") + GPU_KERNEL + "\nfrom . import more\nraise ValueError"
        plugins.put("half", broken, more=op("PluginMore"))
        assert not knows("PluginHalf")
        assert not knows("PluginMore")
        assert not get_registered_kernels_for_op("PluginHalf").kernel
        kernels = get_registered_kernels_for_op("MatMul").kernel
        assert "TPU" not in {kernel.device_type for kernel in kernels}
        assert "opkernel_plugins.half.more" not in sys.modules

    def test_an_op_that_another_plugin_has(self, plugins: Plugins):
        plugins.put("first", op("PluginTwice"))
        plugins.put("second", op("PluginOther") + op("PluginTwice"))
        assert opkernel.raw_ops.PluginTwice(x=1) == 2
        assert not knows("PluginOther")
        assert problem_of("second").startswith("AlreadyExistsError: Op with name PluginTwice")
        assert "second/ops.py, line" in problem_of("second").replace(os.sep, "/")

    def test_an_op_of_the_catalogue(self, plugins: Plugins):
        plugins.put("thief", op("MatMul"))
        assert problem_of("thief").startswith("AlreadyExistsError: Op with name MatMul")
        assert opkernel.raw_ops.MatMul(a=[[2.0]], b=[[3.0]]) == 6

    def test_two_folders_of_one_name(self, plugins: Plugins):
        plugins.put("a", op("PluginOfA"))
        other = plugins.put("b", op("PluginOfB"))
        (other / "plugin.toml").write_text(
            'name = "a"\nversion = "2"\napi = "1.0"\nmodules = ["ops"]'
        )
        assert knows("PluginOfA")
        assert not knows("PluginOfB")
        assert [bool(plugin.error) for plugin in load_plugins()] == [False, True]


class TestLookingUpWhileImported:
    def test_an_op_of_a_plugin_that_comes_later(self, plugins: Plugins):
        early = op("PluginEarly") + "\nlater = opkernel.raw_ops.PluginLate(x=4)"
        plugins.put("a_early", early)
        plugins.put("b_late", op("PluginLate"))
        assert knows("PluginEarly")
        assert sys.modules["opkernel_plugins.a_early.ops"].later == 8
        assert [plugin.problem for plugin in load_plugins()] == ["", ""]

    def test_an_op_that_nobody_has(self, plugins: Plugins):
        plugins.put("asks", "import opkernel\nhas = hasattr(opkernel.raw_ops, 'PluginNobody')")
        assert not knows("PluginNobody")
        assert sys.modules["opkernel_plugins.asks.ops"].has is False

    def test_its_own_op_and_kernels(self, plugins: Plugins):
        plugins.put(
            "itself", op("PluginItself") + "\nassert opkernel.raw_ops.PluginItself(x=1) == 2"
        )
        assert knows("PluginItself")


class TestThreads:
    SLOW = "import time\ntime.sleep({})\n"

    def all_of(self, *targets) -> None:
        threads = [threading.Thread(target=target, daemon=True) for target in targets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=300)
        assert not any(thread.is_alive() for thread in threads)

    def test_all_wait_for_the_one_that_loads(self, plugins: Plugins):
        runs = plugins.folder / "runs"
        count = f"with open({str(runs)!r}, 'a') as runs: runs.write('x')\n"
        plugins.put("slow", count + self.SLOW.format(0.2) + op("PluginSlow"))
        found: list[bool] = []
        self.all_of(*[lambda: found.append(knows("PluginSlow"))] * 8)
        assert found == [True] * 8
        assert runs.read_text() == "x"

    def test_an_import_that_a_plugin_waits_for_does_not_wait_for_it(self, plugins: Plugins):
        ask = "import opkernel\nhasattr(opkernel.raw_ops, 'PluginNobody')\n"
        plugins.install("plugin_asking", self.SLOW.format(0.2) + ask + op("PluginAsking"))
        needs = self.SLOW.format(0.1) + "import plugin_asking\n"
        plugins.put("needs", needs + op("PluginNeeds"))
        self.all_of(load_plugins, lambda: importlib.import_module("plugin_asking"))
        assert knows("PluginAsking")
        assert knows("PluginNeeds")

    def test_many_threads_asking_for_everything(self, plugins: Plugins):
        for number in range(5):
            plugins.put(f"plugin{number}", self.SLOW.format(0.01) + op(f"PluginMany{number}"))
        asked = [lambda i=i: knows(f"PluginMany{i}") for i in range(5)]
        listing = [global_op_registry().names, lambda: get_registered_kernels_for_op("MatMul")]
        self.all_of(*asked, *listing, *asked)
        assert [plugin.problem for plugin in load_plugins()] == [""] * 5


class TestLoadLibrary:
    def test_a_folder(self, plugins: Plugins, tmp_path, monkeypatch):
        monkeypatch.delenv("OPKERNEL_PLUGIN_PATH")
        folder = plugins.put("explicit", op("PluginExplicit"))
        (plugin,) = opkernel.load_library(folder)
        assert plugin.name == "explicit"
        assert contents_of(plugin).ops == {"PluginExplicit"}
        assert opkernel.load_library(plugins.folder) == [plugin]
        assert plugin in load_plugins()

    def test_a_python_file(self, plugins: Plugins, tmp_path):
        file = tmp_path / "zero_out.py"
        file.write_text(op("PluginZeroOut"))
        opkernel.load_library(str(file))
        assert opkernel.raw_ops.PluginZeroOut(x=2) == 4

    def test_a_module(self, plugins: Plugins):
        (plugins.site / "plugin_module.py").write_text(op("PluginModule"))
        (plugin,) = opkernel.load_library("plugin_module")
        assert contents_of(plugin).ops == {"PluginModule"}

    def test_an_installed_plugin_is_checked(self, plugins: Plugins):
        plugins.install("plugin_of_future", op("PluginOfFuture"), keywords="opkernel-api=3.0")
        with pytest.raises(FailedPreconditionError, match=r"version 3\.0"):
            opkernel.load_library("plugin_of_future")
        assert "plugin_of_future" not in sys.modules

    def test_what_the_process_finds_anyhow(self, plugins: Plugins):
        folder = plugins.put("found", op("PluginFound"))
        (found,) = load_plugins()
        assert opkernel.load_library(folder) == [found]

    def test_errors_are_raised(self, plugins: Plugins, tmp_path):
        with pytest.raises(NotFoundError, match=r"nowhere/at\.all"):
            opkernel.load_library("nowhere/at.all")
        with pytest.raises(NotFoundError, match="no kernel library"):
            opkernel.load_library(tmp_path)
        with pytest.raises(FailedPreconditionError, match=r"ModuleNotFoundError.*nobody_has_this"):
            opkernel.load_library("nobody_has_this")
        with pytest.raises(FailedPreconditionError, match=r"version 7\.0 .* version 1\.0"):
            opkernel.load_library(plugins.put("future", "", api="7.0"))
        with pytest.raises(AlreadyExistsError, match="MatMul"):
            opkernel.load_library(plugins.put("thief", op("MatMul")))
        (tmp_path / "not a name.py").write_text("")
        with pytest.raises(InvalidArgumentError, match="no name"):
            opkernel.load_library(tmp_path / "not a name.py")

    def test_one_that_failed_can_be_mended_and_loaded(self, plugins: Plugins):
        folder = plugins.put(
            "mended", "from . import more\nraise ValueError", more=op("PluginMended")
        )
        with pytest.raises(FailedPreconditionError, match="ValueError"):
            opkernel.load_library(folder)
        (folder / "ops.py").write_text("from . import more  # a different size")
        opkernel.load_library(folder)
        assert opkernel.raw_ops.PluginMended(x=2) == 4


PROVIDER = """
import numpy as np
from opkernel.kernel import KernelProvider, register_kernel, register_provider

provider = register_provider(KernelProvider("of_plugin", priority={priority}))
register_kernel("Neg", device="CPU", registry=provider.kernels)(lambda x: np.full(x.shape, 7, x.dtype))
"""


class TestProviders:
    CODE = """
import opkernel
graph = opkernel.Graph()
with graph.as_default():
    y = opkernel.raw_ops.Neg(x=opkernel.constant(1.0))
with opkernel.Session(graph, optimize=False, providers={names}) as session:
    print(session.run(y))
"""

    def test_it_is_loaded_where_somebody_names_it(self, plugins: Plugins):
        plugins.put("provides", PROVIDER.format(priority=-1))
        assert run(self.CODE.format(names=None), plugins) == "-1.0\n"
        assert run(self.CODE.format(names=["of_plugin"]), plugins) == "7.0\n"
        plugins.install("provides_too", PROVIDER.format(priority=-1).replace("of_plugin", "other"))
        assert run(self.CODE.format(names=["other"]), plugins) == "7.0\n"

    def test_once_loaded_its_priority_counts(self, plugins: Plugins):
        plugins.put("provides", PROVIDER.format(priority=1))
        code = "from opkernel.plugins import load_plugins\nload_plugins()\n" + self.CODE
        assert run(code.format(names=None), plugins) == "7.0\n"

    def test_that_of_a_plugin_that_fails_is_taken_back(self, plugins: Plugins):
        plugins.put("provides", PROVIDER.format(priority=1) + "raise ValueError('no luck')")
        assert "no luck" in problem_of("provides")
        assert "of_plugin" not in [one.name for one in registered_providers()]
        with pytest.raises(NotFoundError, match="no kernel provider 'of_plugin'"):
            choose_providers(["of_plugin"])


ENGINE = """
from opkernel.engines import Engine, register_engine

class Steam(Engine):
    name = "steam"

    def check_installed(self):
        pass

    def refusal(self, op):
        return "it is too cold"

    def compile(self, body, arguments):
        raise NotImplementedError

register_engine(Steam())
"""


def test_an_engine_is_found_by_its_name(plugins: Plugins):
    plugins.install("boiler", ENGINE)
    code = "from opkernel.engines import engine_named\nprint(engine_named('steam').refusal(None))"
    assert run(code, plugins) == "it is too cold\n"


def test_what_a_plugin_that_fails_has_registered_is_taken_back(plugins: Plugins):
    registers = """
import opkernel
from opkernel.optimization import Grouping, register_optimization
@register_optimization(Grouping.PRE_PLACEMENT, 0)
def boil(editor):
    'Boil.'

@opkernel.register_gradient("Boiling")
def boiling_gradient(op, grad):
    return grad
"""
    plugins.put("boiler", f"{ENGINE}{registers}raise ValueError('no steam')")
    assert "no steam" in problem_of("boiler")
    assert "steam" not in registered_engines()
    assert "boil" not in [one.name for one in optimization_passes()]
    assert not has_gradient_entry("Boiling")


TOY = (SOURCES.parent / "examples/device/toy_device.py").read_text()


class TestDeviceTypes:
    CODE = """
import sys
import opkernel
from opkernel.device.device_factory import device_types
graph = opkernel.Graph()
with graph.as_default():
    x = opkernel.placeholder(opkernel.float32, name="x")
    with graph.device({device!r}):
        y = opkernel.raw_ops.Neg(x=x, name="y")
config = opkernel.SessionConfig(device_count={counts})
{run}
print(device_types())
"""
    SESSION = """
with opkernel.Session(graph, config=config) as session:
    print(session.run(y, {x: 1.0}), len(session.list_devices()))
"""
    LATER = """
with opkernel.Session(graph, config=config) as session:
    with graph.as_default(), graph.device("/device:TOY:0"):
        z = opkernel.raw_ops.Neg(x=y)
    print(session.run(z, {x: 1.0}), len(session.list_devices()))
"""
    DIRECT = """
session = opkernel.DirectSession(config)
session.create(graph.as_graph_def())
print(session.run({"x": 1.0}, ["y:0"])[0], len(session.list_devices()))
"""
    PLACED = """
from opkernel.runtime.placement.placer import DeviceSet
from opkernel.runtime.placement.placer import place_with_reasons
placed = place_with_reasons(graph.get_operations(), DeviceSet.of_session({}))
print(placed[-1].device.name.rpartition("device:")[2])
"""
    CHECKED = """
from opkernel.testing import check_device
check_device("TOY")
"""

    @pytest.mark.parametrize(
        ("device", "counts", "run_it", "printed"),
        [
            ("/device:TOY:0", {}, SESSION, "-1.0 2\n['CPU', 'TOY']\n"),
            ("/device:TOY:1", {"TOY": 2}, SESSION, "-1.0 3\n['CPU', 'TOY']\n"),
            ("", {"TOY": 1}, SESSION, "-1.0 2\n['CPU', 'TOY']\n"),
            ("", {}, LATER, "1.0 2\n['CPU', 'TOY']\n"),
            ("/device:TOY:0", {}, DIRECT, "-1.0 2\n['CPU', 'TOY']\n"),
            ("/device:TOY:0", {}, PLACED, "TOY:0\n['CPU', 'TOY']\n"),
            ("", {}, CHECKED, "['CPU', 'TOY']\n"),
            ("/device:CPU:1", {"CPU": 2, "TOY": 0}, SESSION, "-1.0 2\n['CPU']\n"),
        ],
    )
    def test_it_is_loaded_where_somebody_names_it(
        self,
        device: str,
        counts: dict[str, int],
        run_it: str,
        printed: str,
        plugins: Plugins,
    ):
        plugins.put("toy", TOY)
        code = self.CODE.format(device=device, counts=counts, run=run_it)
        assert run(code, plugins) == printed

    def test_a_type_that_no_plugin_brings(self, plugins: Plugins):
        plugins.put("doubles", op("PluginBesideDevices"))
        with pytest.raises(NotFoundError, match="No device factory is registered for 'TOY'"):
            device_factory("TOY")
        assert knows("PluginBesideDevices")
        graph = opkernel.Graph()
        with graph.as_default(), graph.device("/device:TOY:0"):
            y = opkernel.raw_ops.Neg(x=opkernel.constant(1.0))
        strict = opkernel.SessionConfig(allow_soft_placement=False)
        refused = pytest.raises(
            InvalidArgumentError, match="assigned to /device:TOY:0 but available"
        )
        with opkernel.Session(graph, config=strict) as session, refused:
            session.run(y)
        with opkernel.Session(graph) as session:
            assert session.run(y) == -1

    def test_those_of_a_plugin_that_fails_are_taken_back(self, plugins: Plugins):
        takes_cpu = 'register_device_factory("CPU", ToyFactory(), priority=100)\n'
        plugins.put("toy", TOY + takes_cpu + "raise ValueError('no luck')")
        before = device_types()
        assert "no luck" in problem_of("toy")
        assert device_types() == before
        assert type(device_factory("CPU")) is CpuFactory
