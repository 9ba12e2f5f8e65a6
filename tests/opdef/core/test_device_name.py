"""Device names in whole and in part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef import (
    DeviceName,
    canonicalize_device_name,
    device_name_to_cpu_device_name,
)

BASE = "/job:foo/replica:10/task:0/device:CPU:0"


def full(text: str) -> DeviceName:
    return DeviceName.parse_full_name(text)


def names() -> st.SearchStrategy[DeviceName]:
    small = st.none() | st.integers(0, 1)
    word = st.none() | st.sampled_from(["a", "B_1"])
    return st.builds(DeviceName, word, small, small, word, small)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("/job:foo/replica:1/task:2/device:GPU:3", "/job:foo/replica:1/task:2/device:GPU:3"),
        ("/job:foo/replica:1/task:2/device:GPU:*", "/job:foo/replica:1/task:2/device:GPU:*"),
        ("/job:foo/replica:1/task:2/GPU:3", "/job:foo/replica:1/task:2/device:GPU:3"),
        ("/job:*/replica:*/task:*/gpu:*", "/device:GPU:*"),
        ("/task:2/job:x", "/job:x/task:2"),
        ("/cpu:0", "/device:CPU:0"),
        ("/task:01", "/task:1"),
        ("/task:4294967297", "/task:1"),
        ("/task:2147483648", "/task:-2147483648"),
        ("/task:18446744073709551615", "/task:-1"),
        ("/task:" + "0" * 30 + "1", "/task:1"),
        ("/device:GPU", "/device:GPU:*"),
        ("/device:gpu:1", "/device:gpu:1"),
        ("/device:*:*", ""),
        ("/device:*:3/job:x", "/job:x"),
        ("/device:TPU_SYSTEM:0", "/device:TPU_SYSTEM:0"),
        ("/cpu:0/gpu:1", "/device:GPU:1"),
        ("/gpu:1/device:*", ""),
        ("/job:a/job:*", ""),
        ("", ""),
        ("/", ""),
    ],
)
def test_full_names(text: str, canonical: str) -> None:
    assert str(full(text)) == canonical
    assert str(DeviceName.parse(text)) == canonical
    assert str(DeviceName.parse_full_or_local_name(text)) == canonical


def test_local_names() -> None:
    assert DeviceName.parse_local_name("gpu:07") == DeviceName(type="gpu", id=7)
    assert DeviceName.parse_full_or_local_name("gpu:07") == DeviceName(type="gpu", id=7)


def test_device_scopes_take_a_local_name_in_small_letters() -> None:
    assert str(DeviceName.parse("CPU:0")) == str(DeviceName.parse("cpu:0")) == "/device:CPU:0"


@pytest.mark.parametrize(
    "text",
    [
        "/gpu", "/job:foo bar", "/job:1foo", "/job:foo-1", "/replica:-1", "/replica:x", "/device::1",
        "/device:GPU:-1", "/job:foo//task:1", "//", "/job:foo ", "/JOB:foo", "localhost", "/tpu:0",
        "/task:18446744073709551616", "/task:99999999999999999999", "/task:" + "9" * 10_000, "/job:été", "/job:a/", "/job:*b",
        "/cpu:1x", "/device:GPU:1:2", "device:GPU:1", "/task:٣",
    ],
)  # fmt: skip
def test_malformed_full_names_are_refused(text: str) -> None:
    for parse in (full, DeviceName.parse, DeviceName.parse_full_or_local_name):
        with pytest.raises(InvalidArgumentError, match="Malformed device specification"):
            parse(text)


@pytest.mark.parametrize("text", ["", "cpu", "cpu:", "cpu:*", "/cpu:0", "_a:0", "cpu:0 ", "1a:0"])
def test_malformed_local_names_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="Malformed device specification"):
        DeviceName.parse_local_name(text)


@given(names())
def test_the_text_of_a_name_reads_as_the_name(name: DeviceName) -> None:
    if name.type is not None or name.id is None:
        assert full(str(name)) == name


def test_merge_puts_the_inner_name_over_the_outer() -> None:
    outer = full("/job:w/task:1/device:GPU:0")
    assert str(outer.merge(full("/task:2"))) == "/job:w/task:2/device:GPU:0"
    assert str(outer.merge(full("/device:CPU:*"))) == "/job:w/task:1/device:CPU:0"


@given(names(), names())
def test_names_that_one_device_can_have_merge_to_what_specifies_both(
    one: DeviceName, other: DeviceName
) -> None:
    if one.is_compatible_with(other):
        merged = one.merge_dev_names(other)
        assert merged.is_specification_of(one)
        assert merged.is_specification_of(other)
        assert merged == other.merge_dev_names(one)
    else:
        with pytest.raises(InvalidArgumentError, match="Cannot merge devices with incompatible"):
            one.merge_dev_names(other)


@given(names(), names())
def test_a_specification_changes_nothing_when_merged(one: DeviceName, other: DeviceName) -> None:
    assert one.is_specification_of(other) == (one.merge(other) == one)


@pytest.mark.parametrize(
    ("one", "other", "parts"),
    [
        ("/job:a", "/job:b", "jobs: '/job:a' and '/job:b'"),
        ("/job:a/replica:1", "/replica:2", "replicas: '/job:a/replica:1' and '/replica:2'"),
        ("/task:1", "/task:2", "tasks: '/task:1' and '/task:2'"),
        ("/gpu:1", "/cpu:1", "types: '/device:GPU:1' and '/device:CPU:1'"),
        ("/gpu:1", "/job:a/gpu:2", "ids: '/job:a/device:GPU:1' and '/job:a/device:GPU:2'"),
    ],
)
def test_names_that_conflict(one: str, other: str, parts: str) -> None:
    with pytest.raises(InvalidArgumentError, match=parts):
        full(one).merge_dev_names(full(other))


@pytest.mark.parametrize("part", ["/job:a", "/replica:1", "/task:1", "/device:GPU:*", "/gpu:1"])
def test_a_specification_has_every_part_that_is_asked_for(part: str) -> None:
    whole = full("/job:a/replica:1/task:1/gpu:1")
    other = full("/job:b/replica:2/task:2/cpu:2")
    asked = full(part)
    assert whole.is_specification_of(asked)
    assert not other.is_specification_of(asked)
    assert not full("").is_specification_of(asked)
    assert asked.is_specification_of(full(""))
    assert whole.is_compatible_with(asked)
    assert not other.is_compatible_with(asked)
    assert full("").is_compatible_with(asked)


def test_soft_placement_opens_what_conflicts() -> None:
    def merged(one: str, other: str) -> str:
        return str(full(one).merge_dev_names(full(other), allow_soft_placement=True))

    assert merged("/job:a/gpu:1", "/cpu:1") == "/job:a"
    assert merged("/job:a/gpu:1", "/gpu:2") == "/job:a/device:GPU:*"
    with pytest.raises(InvalidArgumentError, match="incompatible jobs"):
        merged("/job:a", "/job:b")


def test_override_takes_the_other_where_types_or_indices_conflict() -> None:
    assert (
        str(full("/job:a/gpu:1").merge_override_dev_names(full("/cpu:2"))) == "/job:a/device:CPU:2"
    )
    with pytest.raises(InvalidArgumentError, match="'/job:a/device:GPU:1' and '/job:b'"):
        full("/job:a/gpu:1").merge_override_dev_names(full("/job:b"))


def test_unset_parts_are_filled() -> None:
    assert (
        str(full("/job:a/gpu:*").merge_unset_dev_names(full("/job:b/cpu:1")))
        == "/job:a/device:GPU:1"
    )


def test_parts_of_a_name() -> None:
    name = full("/job:a/replica:0/task:1/gpu:2")
    assert name.is_complete
    assert name.task_name == "/job:a/replica:0/task:1"
    assert name.local_name == "GPU:2"
    assert name.is_same_address_space(full("/job:a/replica:0/task:1/cpu:0"))
    assert not name.is_same_address_space(full("/job:a/replica:0/task:2"))
    assert not name.is_same_address_space(full("/job:a/replica:0"))
    assert full("/job:a/gpu:*").task_name is None
    assert full("/job:a/gpu:*").local_name is None
    assert full("/task:0").has_some_details
    assert not full("/task:*").has_some_details


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("/job:foo/replica:10/task:0/device:CPU:1", "/job:foo/replica:10/task:0/device:CPU:1"),
        ("/job:foo/replica:10/cpu:1", "/job:foo/replica:10/task:0/device:CPU:1"),
        ("/device:GPU:*", "/job:foo/replica:10/task:0/device:GPU:0"),
        ("CPU:1", "/job:foo/replica:10/task:0/device:CPU:1"),
        ("/task:3", "/job:foo/replica:10/task:3/device:CPU:0"),
    ],
)
def test_canonical_names(text: str, canonical: str) -> None:
    assert canonicalize_device_name(text, BASE) == canonical


@pytest.mark.parametrize(
    ("text", "base", "message"),
    [
        ("zz", BASE, "Could not parse zz into a device specification"),
        ("/cpu:1", "/job:foo", "Basename: /job:foo should be fully specified"),
        ("/cpu:1", "bad", "Could not parse basename: bad into a device specification"),
    ],
)
def test_names_that_have_no_canonical_form(text: str, base: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        canonicalize_device_name(text, base)


def test_the_cpu_beside_a_device() -> None:
    assert device_name_to_cpu_device_name("/job:a/task:1/gpu:3") == "/job:a/task:1/device:CPU:0"
    with pytest.raises(InternalError, match="Could not parse device name bad"):
        device_name_to_cpu_device_name("bad")
