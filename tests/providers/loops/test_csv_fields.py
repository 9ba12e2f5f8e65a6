"""The loop that cuts records into fields."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.libraries import is_installed
from opkernel.providers.loops import loops_run

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]
DEFAULT = np.array([b"-"], object)


def decoded(records: list[bytes], count: int, **attrs: Any) -> list[list[bytes]]:
    found = raw_ops.DecodeCSV(
        records=np.array(records, object), record_defaults=[DEFAULT] * count, **attrs
    )
    return [column.tolist() for column in found]


@pytest.mark.parametrize("form", FORMS)
def test_fields_in_quotes(form: Any) -> None:
    records = [b'a,"b,""c""",d', b'"",x,"line\nbreak"', b"\n1,2,3", b'p,"q",']
    with loops_run(form):
        assert decoded(records, 3) == [
            [b"a", b"-", b"1", b"p"],
            [b'b,"c"', b"x", b"2", b"q"],
            [b"d", b"line\nbreak", b"3", b"-"],
        ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("delimiter", [b",", b"^", b"]", b"\\", b"a", b" "])
def test_fields_in_quotes_of_records_that_are_lines(form: Any, delimiter: bytes) -> None:
    fields = {
        b'"x,y"': b"x,y",
        b"1": b"1",
        b'"2"': b"2",
        b'""': b"-",
        b"": b"-",
        b'""""': b'"',
        b'"\r,"",,"': b'\r,",,',
    }
    given, wanted = zip(*fields.items(), strict=True)
    rows = [given[i:] + given[:i] for i in range(len(given))]
    records = [b",".join(row).replace(b",", delimiter) for row in rows]
    columns = [[wanted[(i + j) % len(wanted)] for i in range(len(rows))] for j in range(len(rows))]
    with loops_run(form):
        assert decoded(records, len(rows), field_delim=delimiter.decode()) == [
            [field.replace(b",", delimiter) for field in column] for column in columns
        ]


@pytest.mark.parametrize("form", FORMS)
def test_quotes_do_not_go_on_in_the_next_record(form: Any) -> None:
    with loops_run(form), pytest.raises(InvalidArgumentError, match="has to end with quote"):
        decoded([b'a,"b', b'c",d'], 2)


@pytest.mark.parametrize("form", FORMS)
def test_chosen_fields_end_the_reading(form: Any) -> None:
    records = [b'a,"b",c,"wrong', b"d,e,", b'f,g,h"']
    with loops_run(form):
        assert decoded(records[:2], 1, select_cols=[1]) == [[b"b", b"e"]]
        assert decoded(records[:2], 2, select_cols=[0, 2]) == [[b"a", b"d"], [b"c", b"-"]]
        with pytest.raises(InvalidArgumentError, match="Unquoted fields cannot have quotes"):
            decoded(records, 1, select_cols=[2])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b'"a', "has to end with quote"),
        (b'"a"b,c', "has to be escaped"),
        (b'a"b,c', "cannot have quotes"),
        (b'"a",b,c', "Expect 2 fields but have 3 in record 1"),
        (b'"a"', "Expect 2 fields but have 1 in record 1"),
    ],
)
def test_wrong_records(form: Any, record: bytes, message: str) -> None:
    with loops_run(form), pytest.raises(InvalidArgumentError, match=message):
        decoded([b'"fine",x', record], 2)


@pytest.mark.parametrize("form", FORMS)
def test_quotes_that_are_bytes_like_others(form: Any) -> None:
    with loops_run(form):
        found = decoded([b'"a;b"', b"\nc;d"], 2, field_delim=";", use_quote_delim=False)
    assert found == [[b'"a', b"c"], [b'b"', b"d"]]


@pytest.mark.parametrize("form", FORMS)
def test_a_field_far_behind_the_last_one_takes_no_memory(form: Any) -> None:
    with loops_run(form), pytest.raises(InvalidArgumentError, match="Expect 2 fields but have 1"):
        decoded([b'a,"b"'], 2, select_cols=[0, 2**62])
