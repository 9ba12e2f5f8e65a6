"""`opkernel serve`: models behind TensorFlow Serving's REST interface."""

from __future__ import annotations

import re
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkernel.cli.limits import checked_seconds
from opkernel.cli.options import imported_libraries, jit_option, permission_options, permissions
from opkernel.cli.output import WrongUse, echo, one_line
from opkernel.device.budget import current_budget

if TYPE_CHECKING:
    from opkernel.serving import ModelServer, VersionStatus

_VERSIONS = re.compile(r"latest|all|[0-9]{1,18}(,[0-9]{1,18})*")
_LABEL = re.compile(r"([^=/:]+)=([0-9]{1,18})")


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=8501, show_default=True, help="The port; 0 for any that is free, without --replicas.")  # fmt: skip
@click.option("--grpc-port", type=click.IntRange(0, 65535), metavar="PORT", help="Answer by gRPC, too, at this port; 0 for any that is free.")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen; 0.0.0.0 for all networks.")  # fmt: skip
@click.option("--name", default="", metavar="NAME", help="What the model is called; by default as DIRECTORY.")  # fmt: skip
@click.option("--versions", default="latest", show_default=True, metavar="latest|all|N,...", help="The versions to serve.")  # fmt: skip
@click.option("--label", "labels", multiple=True, metavar="LABEL=N", help="A name for a version, as in /labels/LABEL.")  # fmt: skip
@jit_option
@click.option("--max-batch", type=click.IntRange(1, 4096), default=1, show_default=True, metavar="ROWS", help="Join requests to so many rows; 1 for never.")  # fmt: skip
@click.option("--batch-timeout-ms", type=click.FloatRange(0, 60_000), default=1.0, show_default=True, metavar="MS", help="How long a request waits for others to join.")  # fmt: skip
@click.option("--max-request-bytes", type=click.IntRange(1, 1 << 40), default=64 << 20, show_default=True, metavar="BYTES", help="Refuse larger requests.")  # fmt: skip
@click.option("--timeout-s", type=click.FloatRange(0, 86400, min_open=True), default=30.0, show_default=True, metavar="SECONDS", help="Give a request up after this time.")  # fmt: skip
@click.option("--replicas", type=click.IntRange(1, 10_000), metavar="N", help="Answer by N processes on Ray Serve; by this one by default.")  # fmt: skip
@click.option("--timeout", type=float, metavar="SECONDS", callback=checked_seconds, help="End the server after this time.")  # fmt: skip
@permission_options
def serve(
    directory: Path,
    port: int,
    grpc_port: int | None,
    host: str,
    name: str,
    versions: str,
    labels: tuple[str, ...],
    jit: str,
    max_batch: int,
    batch_timeout_ms: float,
    max_request_bytes: int,
    timeout_s: float,
    replicas: int | None,
    timeout: float | None,
    allow_read: tuple[str, ...],
    allow_write: tuple[str, ...],
) -> None:
    """Serve the models of DIRECTORY over HTTP, as TensorFlow Serving does.

    DIRECTORY is a SavedModel, has versions of one (DIRECTORY/1, DIRECTORY/2), or several models with
    versions. New versions are found while it serves, and told. The page at / shows what is served.
    """
    _check_use(versions, replicas, port, grpc_port)
    from opkernel.serving import ServingOptions

    options = ServingOptions(
        jit=jit,
        max_batch=max_batch,
        batch_timeout_s=batch_timeout_ms / 1e3,
        max_request_bytes=max_request_bytes,
        timeout_s=timeout_s,
        labels=_labels(labels),
        permissions=permissions(allow_read, allow_write),
    )
    if replicas is None:
        from opkernel.serving import ModelServer

        server = ModelServer(directory, options, name=name, versions=versions)
        _serve_here(server, host, port, grpc_port, timeout)
        return
    from opkernel.distributed import serve as serve_on_ray  # needs the extra

    budget = current_budget()
    with serve_on_ray(
        directory,
        options,
        name=name,
        versions=versions,
        num_replicas=replicas,
        host=host,
        port=port,
        memory_limit_bytes=None if budget is None else budget.memory_limit_bytes,
        libraries=imported_libraries(),
    ):
        _print_address(host, port)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            threading.Event().wait(timeout)


def _serve_here(
    server: ModelServer, host: str, port: int, grpc_port: int | None, seconds: float | None
) -> None:
    """Serve in this process until it is told to end, or for so many seconds."""
    from opkernel.serving import serve as serve_at  # needs the extra

    server.observe_status = _print_status
    server.poll()
    with _listener(host, port) as listener:
        _print_address(host, listener.getsockname()[1])
        beside = None
        if grpc_port is not None:
            from opkernel.serving import GrpcServer  # needs the extra

            beside = GrpcServer(server, f"{_in_address(host)}:{grpc_port}")
            echo(one_line(f"serving gRPC at {_in_address(host)}:{beside.port}"))
        serve_at(server, listener, seconds, beside)


def _print_address(host: str, port: int) -> None:
    echo(one_line(f"serving at http://{_in_address(host)}:{port}"))


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _print_status(name: str, status: VersionStatus) -> None:
    problem = "" if status.error is None else f": {status.error.message}"
    echo(one_line(f"{name} version {status.version} {status.state}{problem}"))


def _check_use(versions: str, replicas: int | None, port: int, grpc_port: int | None) -> None:
    """Raise WrongUse for options that make no sense, by themselves or together."""
    if _VERSIONS.fullmatch(versions) is None:
        raise WrongUse(f"--versions {versions}: expected latest, all, or numbers, as 1,3")
    if replicas is not None and port == 0:
        raise WrongUse("--replicas needs a port: --port 8501")
    if replicas is not None and grpc_port is not None:
        raise WrongUse("--replicas: several processes answer by REST alone, not by --grpc-port")


def _labels(labels: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for one in labels:
        match = _LABEL.fullmatch(one)
        if match is None:
            raise WrongUse(f"--label {one}: expected a name and a version, as stable=3")
        found[match[1]] = int(match[2])
    return found


def _listener(host: str, port: int) -> socket.socket:
    """The socket; WrongUse where there is no such address."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise WrongUse(f"--host {host} --port {port}: {reason}") from error
