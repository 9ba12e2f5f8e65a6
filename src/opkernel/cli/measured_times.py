"""MeasuredTimes: what nodes and clusters took in a step, from a file that `opkernel run` wrote."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opkernel.cli.files import InputFile
from opkernel.drawing import DrawnCluster
from opkernel.errors import InvalidArgumentError
from opkernel.escaping import json_value

_LAUNCH = "XlaLaunch"


class MeasuredTimes(NamedTuple):
    """What nodes and clusters took in a step.

    Attributes:
        seconds: by the name of the node; operations of clusters have times where their engine measures them.
        clusters: the clusters.
    """

    seconds: Mapping[str, float] = {}
    clusters: Sequence[DrawnCluster] = ()


def read_times(path: InputFile) -> MeasuredTimes:
    """The times in a file: of `opkernel run --profile --json`, or a trace in Chrome's format.

    Raises:
        InvalidArgumentError: the file is neither.
    """
    try:
        with open(path, encoding="utf-8") as file:
            found = json_value(file.read())
        if "traceEvents" in found:
            return _of_trace(found["traceEvents"])
        return _of_profile(found["profile"]["nodes"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(
            f"{path} is no profile: it must be what `opkernel run --profile --json` prints, or a trace "
            f"that `opkernel run --trace FILE.json` writes"
        ) from error


def _of_profile(rows: Iterable[Mapping[str, Any]]) -> MeasuredTimes:
    seconds, clusters = dict[str, float](), []
    for row in rows:
        name, took = str(row["node"]), float(row["ms"]) / 1e3
        if "operations" not in row:
            seconds[name] = took
            continue
        parts = {
            _beside(name, str(part["node"])): float(part["ms"]) / 1e3 for part in row["operations"]
        }
        clusters.append(DrawnCluster(name, str(row["engine"]), took, parts))
    return _with_parts(seconds, clusters)


def _of_trace(events: Sequence[Mapping[str, Any]]) -> MeasuredTimes:
    """The times in the mean of the steps of a trace."""
    whole = [event for event in events if event.get("ph") == "X"]
    steps = sum("args" not in event for event in whole) or 1
    seconds = defaultdict[str, float](float)
    names: dict[str, str] = {}
    for event in whole:
        if "node" in event.get("args", {}):
            name = str(event["args"]["node"])
            took = float(event["args"].get("kernel ns", 1e3 * float(event["dur"])))
            seconds[name] += took / 1e9 / steps
            names[name] = str(event["name"])
    launched = {name for name, op in names.items() if op == _LAUNCH}
    engines, parts = dict[str, str](), defaultdict[str, dict[str, float]](dict)
    for name, op in names.items():
        cluster = _cluster_of(name, launched)
        if not cluster:
            continue
        inside, took = name.removeprefix(f"{cluster}/"), seconds.pop(name)
        if inside == op:
            engines[cluster] = op
            seconds[cluster] = took
        else:
            parts[cluster][_beside(cluster, inside)] = took
    clusters = [
        DrawnCluster(name, engine, seconds.pop(name), parts[name])
        for name, engine in engines.items()
    ]
    return _with_parts(seconds, clusters)


def _cluster_of(name: str, launched: Container[str]) -> str:
    """The cluster that an operation is in; empty where it is in none."""
    at = len(name)
    while (at := name.rfind("/", 0, at)) > 0:
        if name[:at] in launched:
            return name[:at]
    return ""


def _beside(cluster: str, part: str) -> str:
    """The name that an operation of a cluster has in the model: within the call that the cluster is in."""
    around = cluster.rpartition("/")[0]
    return f"{around}/{part}" if around else part


def _with_parts(seconds: Mapping[str, float], clusters: Sequence[DrawnCluster]) -> MeasuredTimes:
    """The times of nodes, those of measured operations of clusters among them."""
    measured = {name: took for one in clusters for name, took in one.parts.items() if took}
    return MeasuredTimes({**seconds, **measured}, clusters)
