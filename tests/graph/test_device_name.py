"""Device names in whole and in part."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.graph import DeviceName


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("/job:foo/replica:1/task:2/device:GPU:3", "/job:foo/replica:1/task:2/device:GPU:3"),
        ("/job:foo/replica:1/task:2/device:GPU:*", "/job:foo/replica:1/task:2/device:GPU:*"),
        ("/job:*/replica:*/task:*/gpu:*", "/device:GPU:*"),
        ("/task:2/job:x", "/job:x/task:2"),
        ("/cpu:0", "/device:CPU:0"),
        ("CPU:0", "/device:CPU:0"),
        ("/task:01", "/task:1"),
        ("/device:GPU", "/device:GPU:*"),
        ("/device:gpu:1", "/device:gpu:1"),
        ("/device:*:*", ""),
        ("/device:TPU_SYSTEM:0", "/device:TPU_SYSTEM:0"),
        ("/cpu:0/gpu:1", "/device:GPU:1"),
        ("", ""),
        ("/", ""),
    ],
)
def test_parse_and_write(text: str, canonical: str) -> None:
    assert str(DeviceName.parse(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "/gpu", "/job:foo bar", "/job:1foo", "/job:foo-1", "/replica:-1", "/replica:x", "/device::1",
        "/device:GPU:-1", "/job:foo//task:1", "//", "/job:foo ", "/JOB:foo", "localhost", "/tpu:0",
        "/task:99999999999999999999",
    ],
)  # fmt: skip
def test_malformed_names_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="Malformed device specification"):
        DeviceName.parse(text)


def test_merge_puts_the_inner_name_over_the_outer() -> None:
    outer = DeviceName.parse("/job:w/task:1/device:GPU:0")
    assert str(outer.merge(DeviceName.parse("/task:2"))) == "/job:w/task:2/device:GPU:0"
    assert str(outer.merge(DeviceName.parse("/device:CPU:*"))) == "/job:w/task:1/device:CPU:0"
