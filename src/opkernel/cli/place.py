"""`opkernel place`: the device of each node of a model, and the tensors that go between devices."""

from collections import Counter
from collections.abc import Iterable

import click

from opkernel.cli.model import Model, load_model
from opkernel.cli.model_program import open_signature
from opkernel.cli.options import ModelCommand, device_count_option, model_options
from opkernel.cli.output import echo, json_option, print_json, print_table
from opkernel.graph.core.structural_ops import TRANSFER_OPS
from opkernel.runtime.placement.placer import Assignment, DeviceSet, Placed, place_with_reasons
from opkernel.runtime.program.builder import partition
from opkernel.runtime.program.request import Subgraph
from opkernel.runtime.session.session_config import SessionConfig


@click.command(cls=ModelCommand)
@model_options(has_signature=True)
@device_count_option
@click.option(
    "--soft-placement", is_flag=True, help="Put nodes for missing devices on other devices."
)
@json_option
def place(model: Model, counts: dict[str, int], soft_placement: bool, as_json: bool) -> None:
    """Show on which device each node of MODEL runs, and how many tensors go between devices.

    The nodes of a SavedModel are those that a signature runs.

    Nodes of functions run where the node is that calls the function.
    """
    devices = DeviceSet.of_session(counts, allow_soft_placement=soft_placement)
    config = SessionConfig(device_count=counts, allow_soft_placement=soft_placement)
    with open_signature(model, config=config) as opened:
        every = load_model(model).get_operations() if opened is None else opened.inlined.operations
        shown = {*(every if opened is None else opened.operations)}
        all_placed = place_with_reasons(every, devices)
        sent = sorted(_transfers(all_placed, devices).items())
    placed = [one for one in all_placed if one.op in shown]
    if as_json:
        nodes = [
            {"name": op.name, "op": op.type, "device": device.name, "reason": reason}
            for op, device, reason in placed
        ]
        ways = [{"from": a, "to": b, "tensors": number} for (a, b), number in sent]
        print_json({"nodes": nodes, "transfers": ways})
        return
    rows = [(op.name, op.type, _short(device.name), reason) for op, device, reason in placed]
    print_table("Nodes", ("node", "op", "device", "why"), rows)
    echo()
    if sent:
        between = [(_short(a), _short(b), number) for (a, b), number in sent]
        print_table("Tensors between devices", ("from", "to", "tensors"), between)
    else:
        echo("Nothing goes between devices.")


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
