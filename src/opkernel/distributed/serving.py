"""serve: the models of a directory behind Ray Serve, by the application that serves them on one machine."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

from opkernel.device.budget import Budget
from opkernel.distributed.ray_library import start_ray
from opkernel.errors import UnavailableError
from opkernel.interrupts import Closing
from opkernel.kernel import under_budget
from opkernel.libraries import library
from opkernel.records import dataclass
from opkernel.serving import ModelServer, ServingOptions, application

_NAME = "opkernel"
_QUIET = {"log_level": "ERROR"}
_ONGOING = 64
"""The requests that a replica has at once, besides those of a batch; others wait before it."""


@dataclass(frozen=True)
class _Replica:
    """What each replica is told: the arguments of a ModelServer, and its limits."""

    directory: str
    options: ServingOptions
    name: str
    versions: str
    memory_limit_bytes: int | None
    libraries: tuple[str, ...]

    def application(self) -> Any:
        """The ASGI application, made in the process of the replica."""
        for module in self.libraries:
            importlib.import_module(module)
        server = ModelServer(self.directory, self.options, name=self.name, versions=self.versions)
        with under_budget(Budget(self.memory_limit_bytes)):
            return application(server)


def serve(
    directory: str | os.PathLike[str],
    options: ServingOptions | None = None,
    *,
    num_replicas: int = 1,
    name: str = "",
    versions: str = "latest",
    host: str = "127.0.0.1",
    port: int = 8501,
    memory_limit_bytes: int | None = None,
    libraries: Sequence[str] = (),
    ray_actor_options: Mapping[str, Any] | None = None,
) -> ServedModels:
    """Serve the models of a directory on Ray Serve, as `opkernel serve` does on one machine.

        with serve("models", num_replicas=4) as served:
            requests.post(f"{served.url}/v1/models/half:predict", json={"instances": [1.0]})

    Each replica has all models, looks at the directory itself, and counts its own metrics. So the directory is one
    that all machines see, and for about a second after a new version has come some answers are of the old one. Where Ray is
    not initialised, it is started on this machine.

    Args:
        directory: A SavedModel, versions of one, or several models with versions.
        options: How the models are run, and the limits of requests.
        num_replicas: How many processes answer.
        name: What a model is called that is not in a directory of its name.
        versions: Which are served: `latest`, `all`, or numbers, as `1,3`.
        host: Where each machine of the cluster listens.
        port: The port. Where Ray Serve runs already, it keeps its own address.
        memory_limit_bytes: The most memory of tensors in a replica.
        libraries: Modules with ops and kernels that each replica imports first.
        ray_actor_options: What a replica needs, as Ray takes it: `{"num_cpus": 2, "runtime_env": {...}}`. A replica
            reserves no processor by default.

    Raises:
        UnimplementedError: Ray, or the library of the application, is not installed.
        UnavailableError: the replicas do not start.
    """
    return ServedModels(
        _Replica(
            os.path.abspath(directory),
            options or ServingOptions(),
            name,
            versions,
            memory_limit_bytes,
            tuple(libraries),
        ),
        num_replicas,
        {"host": host, "port": port},
        {"num_cpus": 0, **(ray_actor_options or {})},
    )


class ServedModels(Closing):
    """Models on the replicas of Ray Serve, until they are closed.

    Attributes:
        url: Where this machine answers.
    """

    def __init__(
        self,
        replica: _Replica,
        num_replicas: int,
        http_options: Mapping[str, Any],
        ray_actor_options: Mapping[str, Any],
    ) -> None:
        self._ray = library("ray", "opkernel.distributed.serve")
        self._serve = importlib.import_module("ray.serve")
        logging.getLogger("ray.serve").setLevel(logging.ERROR)
        self._starts_ray = start_ray(self._ray)
        try:
            self._serve.start(http_options=dict(http_options), logging_config=_QUIET)
            self._run(replica, num_replicas, ray_actor_options)
        except BaseException:
            self.close()
            raise
        self.url = f"http://{http_options['host']}:{http_options['port']}"

    def close(self) -> None:
        """End the replicas, Ray Serve if it serves nothing else, and Ray if it was started for them."""
        if not self._ray.is_initialized():
            return
        self._serve.delete(_NAME)  # their requests are answered first
        if self._starts_ray:
            self._ray.shutdown()
        elif not self._serve.status().applications:
            self._serve.shutdown()

    def _run(
        self, replica: _Replica, num_replicas: int, ray_actor_options: Mapping[str, Any]
    ) -> None:
        def build() -> Any:  # Ray Serve takes a function, and nothing else that can be called
            return replica.application()

        deployment = self._serve.deployment(
            self._serve.ingress(build)(),
            name="models",
            num_replicas=num_replicas,
            max_ongoing_requests=_ONGOING + replica.options.max_batch,
            ray_actor_options=dict(ray_actor_options),
        )
        try:
            self._serve.run(deployment.bind(), name=_NAME, route_prefix="/")
        except RuntimeError as error:
            raise UnavailableError(f"The replicas do not start: {self._told() or error}") from error

    def _told(self) -> str:
        """The last error of a replica: Ray Serve tells it at the end of a traceback."""
        found = self._serve.status().applications[_NAME].deployments.values()
        return "; ".join([one.message.rstrip().rpartition("\n")[2] for one in found])
