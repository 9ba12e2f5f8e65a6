"""Handles, and the resources that they lead to."""

import gc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from opkernel.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from opkernel.kernel import (
    ANONYMOUS_NAME,
    ResourceBase,
    ResourceMgr,
    create_resource,
    delete_resource,
    handle_from_input,
    lookup_or_create_resource,
    lookup_resource,
    lookup_resources,
    make_ref_counting_handle,
    make_resource_handle,
    tensor_of_handle,
    validate_type,
)
from opkernel.proto import ResourceHandleProto
from opkernel.types import DataType, DtypeAndShape, PartialTensorShape, ResourceHandle


class Stub(ResourceBase):
    def __init__(self, value: int = 0, ended: list[int] | None = None) -> None:
        self.value = value
        self.ended = ended

    def on_destroy(self) -> None:
        if self.ended is not None:
            self.ended.append(self.value)


class Other(ResourceBase):
    pass


@dataclass
class Device:
    name: str = "/job:localhost/replica:0/task:0/device:CPU:0"


class Context:
    def __init__(self, device: str | None = None) -> None:
        self.device = Device() if device is None else Device(device)
        self.resource_manager: ResourceMgr | None = ResourceMgr()


@pytest.fixture
def ctx() -> Context:
    return Context()


def handle_in(ctx: Context, name: str = "name") -> ResourceHandle:
    return make_resource_handle("container", name, ctx.device, Stub)


def test_a_handle_says_where_its_resource_is(ctx: Context) -> None:
    held = [DtypeAndShape(DataType.DT_INT32, PartialTensorShape([4, None]))]
    handle = make_resource_handle("container", "name", ctx.device, Stub, held)
    assert handle.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert (handle.container, handle.name, handle.maybe_type_name) == ("container", "name", "Stub")
    assert handle.dtypes_and_shapes == tuple(held)
    assert not handle.is_ref_counting


def test_anonymous_names_differ(ctx: Context) -> None:
    names = {handle_in(ctx, ANONYMOUS_NAME).name for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("_AnonymousVar") for name in names)


def test_create_lookup_delete(ctx: Context) -> None:
    handle = handle_in(ctx)
    resource = Stub()
    create_resource(ctx, handle, resource)
    with lookup_resource(ctx, handle, Stub) as found:
        assert found is resource
    with pytest.raises(AlreadyExistsError):
        create_resource(ctx, handle, Stub())
    delete_resource(ctx, handle, Stub)
    with pytest.raises(NotFoundError, match="Resource container/name/"):
        lookup_resource(ctx, handle, Stub)
    with pytest.raises(NotFoundError, match="Resource container/name/"):
        delete_resource(ctx, handle, Stub)


def test_lookup_or_create(ctx: Context) -> None:
    handle = handle_in(ctx)
    with lookup_or_create_resource(ctx, handle, Stub, lambda: Stub(3)) as found:
        assert found.value == 3
    with lookup_or_create_resource(ctx, handle, Stub, lambda: Stub(4)) as found:
        assert found.value == 3


def test_lookup_of_several(ctx: Context) -> None:
    handles = [handle_in(ctx, name) for name in "abc"]
    create_resource(ctx, handles[0], Stub(0))
    create_resource(ctx, handles[2], Stub(2))
    found = lookup_resources(ctx, handles, Stub)
    assert [one and one.value for one in found] == [0, None, 2]


def test_the_type_need_not_be_known(ctx: Context) -> None:
    handle = handle_in(ctx)
    resource = Stub()
    create_resource(ctx, handle, resource)
    with lookup_resource(ctx, handle) as found:
        assert found is resource
    delete_resource(ctx, handle)
    with pytest.raises(NotFoundError, match="Resource container/name/<unknown> does not exist"):
        delete_resource(ctx, handle)
    with pytest.raises(NotFoundError, match="Resource container/name/ResourceBase does not exist"):
        lookup_resource(ctx, handle)


def test_a_handle_of_another_device(ctx: Context) -> None:
    elsewhere = Context("/job:localhost/replica:0/task:0/device:CPU:1")
    handle = handle_in(elsewhere)
    message = (
        "Trying to access resource name located in device "
        "/job:localhost/replica:0/task:0/device:CPU:1 from device "
        "/job:localhost/replica:0/task:0/device:CPU:0"
    )
    for attempt in (
        lambda: create_resource(ctx, handle, Stub()),
        lambda: lookup_resource(ctx, handle, Stub),
        lambda: lookup_resources(ctx, [handle], Stub),
        lambda: lookup_or_create_resource(ctx, handle, Stub, Stub),
        lambda: delete_resource(ctx, handle, Stub),
        lambda: delete_resource(ctx, handle),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            attempt()
        assert caught.value.message == message


def test_a_handle_of_another_type(ctx: Context) -> None:
    handle = handle_in(ctx)
    for attempt in (
        lambda: create_resource(ctx, handle, Other()),
        lambda: lookup_resource(ctx, handle, Other),
        lambda: lookup_resources(ctx, [handle], Other),
        lambda: lookup_or_create_resource(ctx, handle, Other, Other),
        lambda: delete_resource(ctx, handle, Other),
        lambda: validate_type(handle, Other),
    ):
        with pytest.raises(
            InvalidArgumentError,
            match=r"Trying to access a handle's resource using the wrong type\. The handle points "
            rf"to a resource \(name 'name'\) of type 'Stub' \(hash code {handle.hash_code}\) but "
            r"you are trying to access the resource as type 'Other' \(hash code \d+\)",
        ):
            attempt()


def test_a_device_without_a_manager(ctx: Context) -> None:
    ctx.resource_manager = None
    with pytest.raises(InvalidArgumentError, match="has no resource manager"):
        lookup_resource(ctx, handle_in(ctx), Stub)


class TestRefCounting:
    def test_the_resource_ends_with_the_last_copy_of_the_handle(self, ctx: Context) -> None:
        ended: list[int] = []
        handle = make_ref_counting_handle(Stub(7, ended), ctx.device)
        assert handle.is_ref_counting
        assert handle.container == "Anonymous"
        tensor = np.empty(2, object)
        tensor[:] = handle
        del handle
        gc.collect()
        assert ended == []
        del tensor
        gc.collect()
        assert ended == [7]

    def test_lookup_asks_no_manager(self, ctx: Context) -> None:
        resource = Stub()
        handle = make_ref_counting_handle(resource, ctx.device)
        ctx.resource_manager = None
        with lookup_resource(ctx, handle, Stub) as found:
            assert found is resource
            assert resource.ref_count == 2
        assert resource.ref_count_is_one
        with pytest.raises(InvalidArgumentError, match="wrong type"):
            lookup_resource(ctx, handle, Other)

    def test_delete_leaves_the_resource_to_its_handles(self, ctx: Context) -> None:
        resource = Stub()
        handle = make_ref_counting_handle(resource, ctx.device)
        delete_resource(ctx, handle)
        assert resource.ref_count_is_one

    def test_names_differ(self, ctx: Context) -> None:
        resource = Stub()
        first, second = (make_ref_counting_handle(resource, ctx.device) for _ in range(2))
        assert first.name != second.name
        assert first.name.startswith("Resource-")


def test_the_handle_in_an_input(ctx: Context) -> None:
    handle = handle_in(ctx)
    tensor = np.empty((), object)
    tensor[()] = handle
    assert handle_from_input(tensor) is handle
    with pytest.raises(InvalidArgumentError, match="Empty resource handle"):
        handle_from_input(np.empty(0, object))
    with pytest.raises(InvalidArgumentError, match="Expected a resource handle, got b'x'"):
        handle_from_input(np.array([b"x"], object))
    with pytest.raises(InvalidArgumentError, match="resource handles is an array, not 3"):
        handle_from_input(3)  # type: ignore[arg-type]  # no array


def test_a_tensor_of_handles_is_no_handle(ctx: Context) -> None:
    tensor: Any = tensor_of_handle(handle_in(ctx))
    for attempt in (
        lambda: lookup_resource(ctx, tensor, Stub),
        lambda: lookup_or_create_resource(ctx, tensor, Stub, Stub),
        lambda: create_resource(ctx, tensor, Stub()),
        lambda: delete_resource(ctx, tensor),
        lambda: validate_type(tensor, Stub),
    ):
        with pytest.raises(
            InvalidArgumentError,
            match=r"a resource handle, got <ndarray of ResourceHandle.*>: handle_from_input gives the handle",
        ):
            attempt()


def test_only_resources_are_created(ctx: Context) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"3 is no resource: .* derive from ResourceBase"
    ):
        create_resource(ctx, handle_in(ctx), 3)  # type: ignore[arg-type]  # no resource


def test_handles_as_text() -> None:
    held = (
        DtypeAndShape(DataType.DT_INT32, PartialTensorShape([4, None])),
        DtypeAndShape(DataType.DT_FLOAT, PartialTensorShape(None)),
    )
    handle = ResourceHandle("cpu:0", "c", "n", 255, "T", held)
    assert handle.summarize_value() == (
        'ResourceHandle(name="n", device="cpu:0", container="c", type="T", dtype and shapes : '
        '"[ DType enum: 3, Shape: [4,?],DType enum: 1, Shape: <unknown> ]")'
    )
    assert ResourceHandle("cpu:0", "c", "n", 255, "T").debug_string() == (
        "device: cpu:0 container: c name: n hash_code: 0xff maybe_type_name T, "
        "dtype and shapes : [  ]"
    )


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ("dtype: DT_FLOAT shape { dim { size: -5 } }", r"\[-5\]"),
        ("dtype: 9999", "9999 is not the number of a DataType"),
    ],
)
def test_a_serialised_handle_that_is_none(held: str, message: str) -> None:
    proto = text_format.Parse(f"name: 'n' dtypes_and_shapes {{ {held} }}", ResourceHandleProto())
    with pytest.raises(InvalidArgumentError, match=message):
        ResourceHandle.from_proto(proto)


def test_a_handle_survives_its_serialisation() -> None:
    held = (DtypeAndShape(DataType.DT_INT32, PartialTensorShape([4, None])),)
    handle = ResourceHandle("cpu:0", "c", "n", 255, "T", held)
    assert ResourceHandle.from_proto(handle.to_proto()) == handle
