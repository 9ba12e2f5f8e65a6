"""Under which name the kernel of a node keeps its resource."""

import re

import pytest

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel import ContainerInfo, ResourceMgr
from opkernel.proto import NodeDef


def node(container: str | None, shared_name: str | None) -> NodeDef:
    node_def = NodeDef(name="node", op="Op")
    for name, value in (("container", container), ("shared_name", shared_name)):
        if value is not None:
            node_def.attr[name].s = value.encode()
    return node_def


@pytest.mark.parametrize(
    ("container", "shared_name", "by_node", "text"),
    [
        ("", "", True, "[localhost,node,public]"),
        ("", "shared", True, "[localhost,shared,public]"),
        ("", "shared", False, "[localhost,shared,public]"),
        ("cat", "", True, "[cat,node,public]"),
        ("a/b-c.d", "a b", False, "[a/b-c.d,a b,public]"),
        (".9", "", True, "[.9,node,public]"),
    ],
)
def test_shared_resources(container: str, shared_name: str, by_node: bool, text: str) -> None:
    manager = ResourceMgr()
    info = ContainerInfo.init(
        manager, node(container, shared_name), use_node_name_as_default=by_node
    )
    assert info.debug_string() == text
    assert info.resource_manager is manager
    assert not info.resource_is_private_to_kernel


def test_private_resources_have_names_that_nothing_else_has() -> None:
    infos = [ContainerInfo.init(ResourceMgr("mine"), node("", "")) for _ in range(2)]
    assert all(info.resource_is_private_to_kernel for info in infos)
    assert all(re.fullmatch(r"_\d+_node", info.name) for info in infos)
    assert infos[0].name != infos[1].name
    assert infos[0].container == "mine"


@pytest.mark.parametrize("container", ["_cat", "a_b", "-a", "a b", "a>b", "a\n"])
def test_names_that_no_container_has(container: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=re.escape(f"container contains invalid characters: {container}")
    ):
        ContainerInfo.init(ResourceMgr(), node(container, ""))


def test_shared_names_do_not_begin_with_an_underscore() -> None:
    with pytest.raises(InvalidArgumentError, match="shared_name cannot start with '_':_foo"):
        ContainerInfo.init(ResourceMgr(), node("", "_foo"))


@pytest.mark.parametrize(
    ("container", "shared_name", "missing"), [(None, "", "container"), ("", None, "shared_name")]
)
def test_missing_attrs(container: str | None, shared_name: str | None, missing: str) -> None:
    with pytest.raises(NotFoundError, match=f"No attr named '{missing}' in NodeDef"):
        ContainerInfo.init(ResourceMgr(), node(container, shared_name))
