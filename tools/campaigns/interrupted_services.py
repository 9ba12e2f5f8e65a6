"""Uses of opkernel's commands, plugins, servers and clusters that are interrupted; see `interrupted_uses`."""

import functools
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tools.campaigns.interrupted_models import Use, dense_module, image, network

__all__ = ["SERVICES"]

_PLUGIN = """
import numpy as np
import opkernel
from opkernel.opdef.common_shapes import unchanged_shape

OP = opkernel.register_op(
    "{name}Double", inputs=["x: T"], outputs=["y: T"], attrs=["T: {{float, int32}}"], shape_fn=unchanged_shape
)

@opkernel.register_kernel(OP, device="CPU")
def kernel(x):
    return x + x

@opkernel.register_gradient(OP)
def gradient(op, grad):
    return opkernel.raw_ops.{name}Double(x=grad)

@opkernel.op
def {name}_triple(x: opkernel.Tensor["T"]) -> opkernel.Tensor["T"]:
    return x * 3

provider = opkernel.KernelProvider("{name}")

@opkernel.register_kernel(OP, device="CPU", registry=provider.kernels)
def faster(x):
    return 2 * x

opkernel.register_provider(provider)

@opkernel.register_optimization(opkernel.Grouping.PRE_PLACEMENT, 30, ops=["{name}Double"])
def {name}_pass(editor):
    "Does nothing."

from opkernel.runtime.program.executors import new_executor, register_executor
register_executor("{name}", lambda args: new_executor("COMPILED_PLAN", args))

import opkernel.engines

class Engine(opkernel.engines.Engine):
    name = "{name}"
    def check_installed(self): pass
    def refusal(self, op): return "no"
    def compile(self, body, arguments): raise NotImplementedError

opkernel.engines.register_engine(Engine())

from opkernel.device.device_factory import DeviceFactory, register_device_factory
from opkernel.device.local_device import LocalDevice

class Factory(DeviceFactory):
    is_offered_unasked = False
    def create_devices(self, options):
        return []

register_device_factory("{upper}", Factory())
"""


@functools.cache
def _plugin() -> Any:
    folder = tempfile.TemporaryDirectory()
    for name in ("one", "two"):
        path = Path(folder.name) / name
        path.mkdir()
        text = _PLUGIN.format(name=name.capitalize(), upper=name.upper())
        (path / "ops.py").write_text(text)
        lines = [f'name = "{name}"', 'version = "0.1"', 'api = "1.0"', 'modules = ["ops"]']
        (path / "plugin.toml").write_text("\n".join(lines))
    return folder


def _use_plugin(folder: Any) -> Any:
    import opkernel

    opkernel.load_library(folder.name)
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [2], name="x")
        inner = graph.create_op("OneDouble", [x]).outputs[0]
        y = graph.create_op("TwoDouble", [inner]).outputs[0]
        grad = opkernel.gradients(y, [x])[0]
    session = opkernel.Session(graph, executor_type="One")
    answer = session.run([y, grad], {x: np.ones(2, np.float32)})
    names = [one.name for one in opkernel.optimization_passes() if one.name.endswith("_pass")]
    return (
        answer,
        names,
        [one for one in opkernel.engines.registered_engines() if one in ("One", "Two")],
    )


def _served() -> Any:
    import opkernel
    from opkernel.serving import ModelServer

    folder = tempfile.TemporaryDirectory()
    opkernel.save(dense_module()(), Path(folder.name) / "dense" / "1")
    return folder, ModelServer(Path(folder.name) / "dense")


def _serve(state: Any) -> Any:
    from opkernel.serving import answer, model_request

    _, server = state
    server.poll()
    predict = model_request("POST", "/v1/models/dense:predict")
    return [answer(server, predict, b'{"instances": [[1.0, 2.0]]}') for _ in range(2)]


_COMMANDS = [
    "run {model} --input x=[[1,2,3],[4,5,6]] --json",
    "show {model} --json",
    "shapes {model} --json",
    "ops AddV2",
    "kernels MatMul",
    "explain {model} sum",
    "optimize {model} -o {folder}/out.pb --fetch sum",
    "decompile {model} -o {folder}/out.py --fetch sum --numpy",
    "show {model} --html {folder}/out.html",
    "place {model}",
    "test --op Neg --calls 1 --json",
]


def _command_line(line: str) -> Use:
    def prepare() -> Any:
        from tests.runtime.small_graph import small_graph

        folder = tempfile.TemporaryDirectory()
        (Path(folder.name) / "model.pb").write_bytes(small_graph())
        return folder

    def do(folder: Any) -> Any:
        from opkernel.cli.commands import commands

        names = {"model": f"{folder.name}/model.pb", "folder": folder.name}
        sys.stdout = output = io.StringIO()  # for good: to put it back may be interrupted
        status = commands([part.format(**names) for part in line.split()], standalone_mode=False)
        if status == 130:
            raise KeyboardInterrupt
        has_times = line.startswith("test")
        return status, "" if has_times else output.getvalue().replace(folder.name, "")

    return Use(prepare, do)


def _cluster(_: Any) -> Any:
    import opkernel
    from opkernel import raw_ops
    from opkernel.distributed import LocalCluster

    graph = opkernel.Graph()
    with graph.as_default():
        with graph.device("/job:ps/task:0"):
            v = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[], shared_name="v")
            raw_ops.AssignVariableOp(resource=v, value=np.float32(10), name="init")
        with graph.device("/job:worker/task:1"):
            x = opkernel.placeholder(opkernel.float32, [], name="x")
            twice = raw_ops.Mul(x=x, y=np.float32(2))
        with graph.device("/job:ps/task:0"):
            raw_ops.AssignAddVariableOp(resource=v, value=twice, name="add")
            raw_ops.ReadVariableOp(resource=v, dtype=opkernel.float32, name="read")
    spec = {"ps": 1, "worker": 2}
    with LocalCluster(spec) as cluster, opkernel.Session(graph, target=cluster) as session:
        session.run("init")
        session.run("add", {"x:0": 3.0})
        return session.run("read:0")


def _predict(_: Any) -> Any:
    import opkernel
    from opkernel.distributed import predict

    with tempfile.TemporaryDirectory() as folder:
        opkernel.save_graph(network(), Path(folder) / "model.pb")
        return [*predict(Path(folder) / "model.pb", {"x": image()}, batch_size=1)]


SERVICES: dict[str, Use] = {
    "plugins": Use(_plugin, _use_plugin),
    "serve": Use(_served, _serve),
    "cluster": Use(lambda: None, _cluster),
    "predict": Use(lambda: None, _predict),
    **{f"command {line}": _command_line(line) for line in _COMMANDS},
}
"""All uses, by name."""
