"""`opkernel place`: the device of each node of a model, and the tensors that go between devices."""

from collections import Counter
from collections.abc import Iterable, Mapping

import click

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.model import Model, load_model
from opkernel.cli.model_options import ModelCommand, model_options
from opkernel.cli.output import echo, json_option, print_json, print_table
from opkernel.graph.core.control_flow_ops import TRANSFER_OPS
from opkernel.runtime.placement.device_set import DeviceSet
from opkernel.runtime.placement.partition import partition
from opkernel.runtime.placement.placer import Assignment, Placed, place_with_reasons
from opkernel.runtime.program.subgraph import Subgraph


@click.command(cls=ModelCommand)
@model_options()
@click.option(
    "--device-count",
    "counts",
    multiple=True,
    metavar="TYPE=N",
    help="The number of devices of a type; by default one CPU.",
)
@click.option(
    "--soft-placement", is_flag=True, help="Put nodes for missing devices on other devices."
)
@json_option
def place(model: Model, counts: tuple[str, ...], soft_placement: bool, as_json: bool) -> None:
    """Tell on which device each node of MODEL runs, and how many tensors go between devices.

    Nodes of functions run where the node is that calls the function.
    """
    devices = DeviceSet.of_session(device_counts(counts), allow_soft_placement=soft_placement)
    graph = load_model(model)
    placed = place_with_reasons(graph.get_operations(), devices)
    sent = _transfers(placed, devices)
    if as_json:
        nodes = [
            {"name": op.name, "op": op.type, "device": device.name, "reason": reason}
            for op, device, reason in placed
        ]
        ways = [{"from": a, "to": b, "tensors": n} for (a, b), n in sorted(sent.items())]
        print_json({"nodes": nodes, "transfers": ways})
        return
    rows = [(op.name, op.type, _short(device.name), reason) for op, device, reason in placed]
    print_table("Nodes", ("node", "op", "device", "why"), rows)
    echo()
    if not sent:
        echo("Nothing goes between devices.")
        return
    ways_rows = [(_short(a), _short(b), str(n)) for (a, b), n in sorted(sent.items())]
    print_table("Tensors between devices", ("from", "to", "tensors"), ways_rows)


def device_counts(given: Iterable[str]) -> Mapping[str, int]:
    """How many devices there are to be by type, from `TYPE=N`.

    Raises:
        WrongUse: one is not of this form.
    """
    counts = {}
    for one in given:
        device_type, equals, count = one.partition("=")
        if not device_type or not equals or not count.isdecimal():
            raise WrongUse(f"--device-count {one}: it takes the form TYPE=N, such as CPU=2")
        counts[device_type] = int(count)
    return counts


def _transfers(placed: Iterable[Placed], devices: DeviceSet) -> Counter[tuple[str, str]]:
    """How many tensors go from device to device when all is run; a control edge takes one, too."""
    device_of = {op: device for op, device, _ in placed}
    client = devices.client_device
    assignment = Assignment(client, {op: d for op, d in device_of.items() if d is not client})
    parts = partition(Subgraph((), (), list(device_of)), assignment)
    sent = Counter[tuple[str, str]]()
    for one in parts:
        for op in one.part.operations:
            if op.type in TRANSFER_OPS and op.inputs and op not in device_of:
                ends = (op.attr[end].s.decode() for end in ("send_device", "recv_device"))
                sent[next(ends), next(ends)] += 1
    return sent


def _short(name: str) -> str:
    return name.rpartition("device:")[2]
