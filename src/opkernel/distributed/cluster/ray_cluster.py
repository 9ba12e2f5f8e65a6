"""RayCluster: tasks that are actors of Ray, on one machine or many.

Ray starts the tasks, places them, carries what they send, and starts those anew that die. Source of the
semantics: TensorFlow core/distributed_runtime/rpc/grpc_server_lib.cc.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from opkernel.distributed.cluster.cluster import Cluster
from opkernel.distributed.cluster.cluster_spec import ClusterSpec, Jobs, TaskName
from opkernel.distributed.collectives.exchange import RayObjectStore, TaskLinks
from opkernel.distributed.coordination.coordination_service import CoordinationService
from opkernel.distributed.coordination.coordination_service_agent import Coordination
from opkernel.distributed.coordination.coordination_state import CoordinationConfig, settle
from opkernel.distributed.ray_library import start_ray
from opkernel.errors import NotFoundError, OpError, UnavailableError, as_op_error
from opkernel.libraries import library
from opkernel.records import dataclass
from opkernel.runtime import SessionConfig


@dataclass(frozen=True)
class TaskLibrary:
    """A module, and its files where tasks cannot find it by its name.

    Ray's runtime environments upload files of this machine for a whole job alone, and not for the actors of one
    that runs. So the files travel with the actors.

    Attributes:
        module: Its name.
        files: The content of its files, by path.
    """

    module: str
    files: dict[str, bytes]

    def load(self) -> None:
        """Import it; raises what it raises."""
        if self.files:
            root = Path(tempfile.mkdtemp(prefix="opkernel-library-"))
            for name, content in self.files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            sys.path.insert(0, str(root))
        importlib.import_module(self.module)


def _task_library(library: str | Path) -> TaskLibrary:
    """The library of the name of a module, of a Python file or of a folder that is a package.

    Raises:
        NotFoundError: there is no such file or folder.
    """
    path = Path(library)
    if path.is_dir():
        files = [one for one in sorted(path.rglob("*")) if one.is_file() and one.suffix != ".pyc"]
        return TaskLibrary(
            path.resolve().name,
            {str(one.relative_to(path.parent)): one.read_bytes() for one in files},
        )
    if path.suffix == ".py" or isinstance(library, Path):
        if not path.is_file():
            raise NotFoundError(f"There is no library {library}")
        return TaskLibrary(path.stem, {path.name: path.read_bytes()})
    return TaskLibrary(str(library), {})


__all__ = ["RayCluster"]

_GROUPS = {
    "run_graph": "run",
    "close_session": "run",
    "coordinate": "run",
    "receive": "transfer",
    "cancel_step": "transfer",
    "collective": "collective",
}
"""The threads of a task by method: steps may wait, and must not keep others from ending their wait."""
_THREADS = {"run": 128, "transfer": 4, "collective": 4, "control": 4}
_RESTARTS = 1000


class RayCluster(Cluster):
    """A cluster whose tasks are actors of Ray.

        with RayCluster({"ps": 1, "worker": 2}) as cluster:
            session = opkernel.Session(graph, target=cluster)

    Where Ray is not initialised, it is started on this machine, and shut down when the cluster is closed. A
    task that dies is started anew, without its state: see `opkernel.distributed.resume`.

    Args:
        spec: the jobs and their tasks.
        resources: the options of Ray's actors by job, such as `{"worker": {"num_cpus": 4, "num_gpus": 1}}`. A task
            reserves no processor where nothing is said of its job.
        config: the devices of each task, and their threads.
        libraries: modules with ops and kernels, which each task imports: names of modules that it can import, or
            Python files and packages, which are brought there. Plugins that are installed are found as everywhere.
        runtime_env: the runtime environment of the actors, as Ray takes it.
        master: the task of operations that name none; see `Cluster`.
        coordination: how the coordination service behaves, which has an actor of its own; there is none where not given.

    Raises:
        UnimplementedError: Ray is not installed.
        InvalidArgumentError: the spec, or a job among the resources, makes no sense.
        UnavailableError: a task does not start.
    """

    def __init__(
        self,
        spec: ClusterSpec | Jobs,
        resources: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        config: SessionConfig | None = None,
        libraries: Sequence[str | Path] = (),
        runtime_env: Mapping[str, Any] | None = None,
        master: str = "",
        coordination: CoordinationConfig | None = None,
    ) -> None:
        super().__init__(spec, master)
        self._ray = library("ray", "RayCluster")
        self._starts_ray = start_ray(self._ray)
        self._name = f"opkernel-{uuid.uuid4().hex[:12]}"
        self._actors: dict[TaskName, Any] = {}
        self._service: Any = None
        self._coordination: Coordination | None = None
        self._is_closed = False
        try:
            if coordination is not None:
                self._start_service(coordination)
            self._start(resources or {}, config or SessionConfig(), libraries, runtime_env)
        except BaseException:
            self.close()
            raise

    def _start_service(self, coordination: CoordinationConfig) -> None:
        options = {"num_cpus": 0, "name": f"{self._name}/coordination"}
        actor = self._ray.remote(**options)(CoordinationActor)
        self._service = actor.remote(self.spec.tasks, coordination)
        self._coordination = Coordination(partial(_call_service, self._service), coordination)

    def _start(
        self,
        resources: Mapping[str, Mapping[str, Any]],
        config: SessionConfig,
        libraries: Sequence[str | Path],
        runtime_env: Mapping[str, Any] | None,
    ) -> None:
        for job in resources:
            self.spec.num_tasks(job)  # which tells of a job that is none
        loaded = [_task_library(one) for one in libraries]
        actor = self._ray.remote(**_ACTOR_OPTIONS)(TaskActor)
        for task in self.spec.tasks:
            options = {"num_cpus": 0, **resources.get(task.job, {})}
            if runtime_env is not None:
                options["runtime_env"] = dict(runtime_env)
            named = actor.options(name=f"{self._name}{task}", **options)
            leader = self.spec.tasks[0]
            self._actors[task] = named.remote(
                self._name, task, config, loaded, leader, self._coordination
            )
        self.list_devices()

    def call(self, task: TaskName, method: str, *args: Any) -> Future[Any]:
        """Call a method of a task's worker."""
        actor = self._actors.get(task)
        if actor is None:
            future: Future[Any] = Future()
            future.set_exception(UnavailableError(f"{task} is not running"))
            return future
        return _called(task, lambda: _send(actor, method, args))

    def close(self) -> None:
        """End all tasks, and Ray where the cluster has started it."""
        if self._is_closed:
            return
        self._is_closed = True
        actors, self._actors = [*self._actors.values(), self._service], {}
        if self._ray.is_initialized():
            for actor in actors:
                if actor is not None:
                    self._ray.kill(actor)
            if self._starts_ray:
                self._ray.shutdown()

    def kill(self, task: TaskName) -> None:
        """End the process of a task, which Ray then starts anew; its steps fail with UnavailableError."""
        self._devices.pop(task, None)
        self._ray.kill(self._actors[task], no_restart=False)


_ACTOR_OPTIONS = {"max_restarts": _RESTARTS, "max_task_retries": 0, "concurrency_groups": _THREADS}


class CoordinationActor:
    """An actor of Ray that has the coordination service. Those who wait for it take no thread.

    The actor has the service's incarnation for its life alone: when it dies, agents are in error, as they are
    when TensorFlow's service dies.

    Args:
        tasks: The tasks of the cluster.
        config: How the service behaves.
    """

    def __init__(self, tasks: Sequence[TaskName], config: CoordinationConfig) -> None:
        self._service = CoordinationService(tasks, config)
        self._service.start()

    async def call(self, method: str, args: Sequence[Any]) -> tuple[OpError | None, Any]:
        """Call a method of the service: its error, and its result."""
        try:
            return None, await asyncio.wrap_future(self._service.call(method, *args))
        except OpError as error:
            return error, None


class TaskActor:
    """A task: an actor that holds a worker, and knows the other tasks of its cluster by name.

    Args:
        cluster: The name of the cluster.
        task: The task.
        config: The devices of the task.
        libraries: What it imports first.
        leader: The task that brings the members of groups together.
        coordination: The coordination service, if there is one.
    """

    def __init__(
        self,
        cluster: str,
        task: TaskName,
        config: SessionConfig,
        libraries: Sequence[TaskLibrary],
        leader: TaskName,
        coordination: Coordination | None,
    ) -> None:
        from opkernel.distributed.cluster.worker import Worker  # in the actor's process alone

        for one in libraries:
            one.load()
        self._cluster = cluster
        self._peers: dict[TaskName, Any] = {}
        links = TaskLinks(leader, self._tell, self._call, RayObjectStore())
        self._worker = Worker(task, config, links, coordination)

    def call(self, method: str, args: Sequence[Any]) -> tuple[OpError | None, Any]:
        """Call a method of the worker: its error, and its result."""
        try:
            return None, getattr(self._worker, method)(*args)
        except Exception as error:
            return as_op_error(error), None

    def _tell(self, task: TaskName, method: str, *args: Any) -> None:
        """Call another task, and wait for nothing. Of one that has died the client hears from Ray."""
        _send(self._peer(task), method, args)

    def _call(self, task: TaskName, method: str, *args: Any) -> Future[Any]:
        """Call another task for a result."""
        return _called(task, lambda: _send(self._peer(task), method, args))

    def _peer(self, task: TaskName) -> Any:
        peer = self._peers.get(task)
        if peer is None:
            peer = self._peers[task] = library("ray", "A task").get_actor(f"{self._cluster}{task}")
        return peer


def _send(actor: Any, method: str, args: Sequence[Any]) -> Any:
    """Have an actor's worker called; a reference to the answer."""
    group = _GROUPS.get(method, "control")
    return actor.call.options(concurrency_group=group).remote(method, args)


def _call_service(actor: Any, method: str, *args: Any) -> Future[Any]:
    """Call a method of the coordination service."""
    return _called("The coordination service", lambda: actor.call.remote(method, args))


def _called(task: TaskName | str, send: Callable[[], Any]) -> Future[Any]:
    """The result of a call, which `send` makes, of a task or of what is named."""
    future: Future[Any] = Future()
    try:
        answer = send()
    except Exception as error:  # Ray is shut down, or refuses the arguments
        future.set_exception(_ray_error(task, error))
    else:
        answer.future().add_done_callback(partial(_complete, future, task))
    return future


def _complete(future: Future[Any], task: TaskName | str, answered: Future[Any]) -> None:
    """Complete a call with the answer that has come from a task, or with what Ray says."""
    try:
        error, result = answered.result()
    except Exception as failure:
        error, result = _ray_error(task, failure), None
    settle(future, error, result)


def _ray_error(task: TaskName | str, failure: Exception) -> OpError:
    """The error for a call that Ray could not make."""
    reason = " ".join(str(failure).split())
    return UnavailableError(f"{task} is not there: {type(failure).__name__}: {reason}")
