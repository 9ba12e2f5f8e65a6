"""The registered ops by name."""

import pytest

from opkernel.opdef import (
    OpRegistry,
    get_registered_ops,
    global_op_registry,
    register_op,
    unknown_shape,
)
from opkernel.opdef.core import op_lookup


def test_all_ops_are_there_by_name() -> None:
    ops = get_registered_ops()
    assert ops["MatMul"] is global_op_registry().look_up_op_def("MatMul")
    assert {"TensorListReserve", "ReaderReadV2"} <= set(ops)


def test_names_are_told_without_building_anything() -> None:
    registry = OpRegistry()
    registry.set_loader(None, names=lambda: ("C", "A"), owner=lambda name: __name__)
    register_op("B", inputs=["no spec"], shape_fn=unknown_shape, registry=registry)
    register_op("A", shape_fn=unknown_shape, registry=registry)
    assert registry.names() == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("name", "is_looked_for"),
    [
        ("NoSuchOpAtAll", True),
        ("_NoSuchOpAtAll", True),
        ("__inference_call_7", False),
        ("while_body_7", False),
        ("Abs", False),
    ],
)
def test_plugins_are_looked_for_only_where_they_may_have_the_op(
    monkeypatch: pytest.MonkeyPatch, name: str, is_looked_for: bool
) -> None:
    """Functions of graphs have other names, and plugins take long to find."""
    looked: list[str] = []
    monkeypatch.setattr(op_lookup, "load_plugins", lambda: looked.append(name))
    assert global_op_registry().knows(name) == (name == "Abs")
    assert looked == [name] * is_looked_for
