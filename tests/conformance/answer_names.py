"""Answers about names: of devices, tensors, functions, and the keys of a rendezvous."""

from collections.abc import Callable
from typing import Any

from answer_opdef import OK, read, refusal
from opkernel.errors import OpError
from opkernel.graph import canonical_function_name, parse_tensor_name
from opkernel.kernel import FrameAndIter, create_key, parse_key
from opkernel.opdef import DeviceName
from opkernel.proto import AttrValue


def device_name(request: dict[str, Any]) -> Any:
    """What a text is as a full and as a local name."""
    full = _device(DeviceName.parse_full_name, request["text"])
    local = _device(DeviceName.parse_local_name, request["text"])
    answer: dict[str, Any] = {"full_ok": full is not None, "local_ok": local is not None}
    if full is not None:
        answer |= {"full": _parts(full), "canonical": str(full)}
    if local is not None:
        answer["local"] = _parts(local)
    return answer


def _device(parse_name: Callable[[str], DeviceName], text: str) -> DeviceName | None:
    try:
        return parse_name(text)
    except OpError:
        return None


def _parts(name: DeviceName) -> dict[str, Any] | None:
    parts = ((part, getattr(name, part)) for part in ("job", "replica", "task", "type", "id"))
    return {part: value for part, value in parts if value is not None} or None


def tensor_name(request: dict[str, Any]) -> Any:
    """The node and the output that a text names."""
    node, index = parse_tensor_name(request["text"])
    string = f"^{node}" if index == -1 else f"{node}:{index}"
    return {"node": node, "index": index, "string": string}


def rendezvous_key(request: dict[str, Any]) -> Any:
    """A key made, or taken apart."""
    if "key" not in request:
        frame_iter = FrameAndIter(int(request["frame"]), request["iter"])
        source, destination = request["src"], request["dst"]
        incarnation = int(request["incarnation"])
        key = create_key(source, incarnation, destination, request["name"], frame_iter)
        return {"key": key}
    try:
        parsed = parse_key(request["key"])
    except OpError as error:
        return {"status": refusal(error)}
    return {
        "status": OK,
        "src_device": parsed.src_device,
        "dst_device": parsed.dst_device,
        "incarnation": str(parsed.src_incarnation),
        "edge": parsed.edge_name,
        "full": parsed.full_key,
    }


def canonicalize(request: dict[str, Any]) -> Any:
    """The name of an instance of a function."""
    attrs = {name: read(text, AttrValue()) for name, text in request["attrs"].items()}
    return {"canonical": canonical_function_name(request["name"], attrs)}
