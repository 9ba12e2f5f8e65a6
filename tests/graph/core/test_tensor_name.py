"""Names of nodes and tensors."""

import pytest

from opkernel.graph import is_valid_node_name, parse_tensor_name
from opkernel.graph.core.tensor_name import format_input, free_name, parse_input


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


@pytest.mark.parametrize(
    ("node", "index", "text"),
    [("a", 0, "a"), ("a", 1, "a:1"), ("s/a", 12, "s/a:12"), ("a", -1, "^a")],
)
def test_inputs_are_written_as_short_as_can_be(node: str, index: int, text: str) -> None:
    assert format_input(node, index) == text
    assert parse_input(text) == (node, index)


def test_an_index_that_is_too_large_finds_no_tensor() -> None:
    assert parse_input("a:18446744073709551616") == ("a", 2**64)
    assert parse_input("a:" + "9" * 100) == ("a", 10**21 - 1)
    assert parse_input("a:" + "0" * 100 + "7") == ("a", 7)


def test_a_name_that_is_taken_gets_the_first_free_number() -> None:
    assert free_name("a", {"b"}) == "a"
    assert free_name("a", {"a"}) == "a_1"
    assert free_name("a", {"a", "a_1", "a_3"}) == "a_2"
