"""Names of nodes and tensors."""

import pytest

from opkernel.graph import is_valid_node_name, parse_tensor_name


@pytest.mark.parametrize(
    ("text", "node", "index"),
    [
        ("a", "a", 0),
        ("a:0", "a", 0),
        ("scope/a:12", "scope/a", 12),
        ("a:00", "a", 0),
        ("^a", "a", -1),
        ("^a:0", "^a", 0),
        ("^", "", -1),
        ("^^a", "^a", -1),
        ("a:b:1", "a:b", 1),
        ("a:-1", "a:-1", 0),
        ("ab9:", "ab9:", 0),
        ("a:٣", "a:٣", 0),
        ("", "", 0),
        (":", ":", 0),
        (":1", "", 1),
        ("a:2147483648", "a", -(2**31)),
        ("a:4294967297", "a", 1),
        ("a:0000000000000000000000000001", "a", 1),
        ("a:18446744073709551616", "a:18446744073709551616", 0),
    ],
)
def test_parse_as_tensorflow_does(text: str, node: str, index: int) -> None:
    assert parse_tensor_name(text) == (node, index)


def test_an_index_of_any_length_is_read() -> None:
    text = "a:" + "9" * 100_000
    assert parse_tensor_name(text) == (text, 0)


@pytest.mark.parametrize("name", ["a-bc_", "a-B.0/.c_", "0123", ".0123", "a>b", "a//b", "a/"])
def test_valid_names(name: str) -> None:
    assert is_valid_node_name(name)


@pytest.mark.parametrize(
    "name", ["", "a:b", "_abc", "a\\b", "/a", "-a", "a>", "a>_b", "a b", "a\n", "é"]
)
def test_invalid_names(name: str) -> None:
    assert not is_valid_node_name(name)


def test_internal_names_may_start_with_an_underscore() -> None:
    assert is_valid_node_name("_abc", allow_internal=True)
    assert not is_valid_node_name("-abc", allow_internal=True)
