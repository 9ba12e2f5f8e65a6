"""Datasets of CSV files and SQL queries. Expected elements and errors are TensorFlow's."""

import gzip
import sqlite3

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.data import CsvDataset, SqlDataset

INVALID = errors.InvalidArgumentError


def outcomes(elements, most=14):
    found: list[object] = []
    while len(found) < most:
        try:
            found.append(next(elements))
        except StopIteration:
            return [*found, "END"]
        except errors.OpError as error:
            found.append(type(error))
    return found


def resumed(dataset, count):
    """The outcomes of a pass that is saved after `count` of them, and restored in a new one."""
    elements = iter(dataset)
    found = outcomes(elements, count)
    if found[-1:] == ["END"]:
        return found
    again = iter(dataset)
    again.restore(elements.save())
    return found + outcomes(again)


TEXT = (
    b'1,"a ""b"",\nc",0.5\r\n2,,\r"3",d"e,1\n4,"x"y,1\n5,z\n6,z,1,2\n\n7, NA ,"NA"\n99999999999,,\n'
    b'-8,"\xc3\xa9",1e400'
)


@pytest.mark.parametrize("packs", [lambda text: text, gzip.compress])
@pytest.mark.parametrize(
    ("defaults", "options", "expected"),
    [
        (
            [opkernel.int32, "none", np.array([9.5], np.float32)],
            {"na_value": "NA"},
            [
                (1, b'a "b",\nc', 0.5),
                (2, b"none", 9.5),
                INVALID,
                INVALID,
                INVALID,
                (-8, b"\xc3\xa9", np.inf),
                "END",
            ],
        ),
        (
            ["none"],
            {"select_cols": [1], "header": True, "use_quote_delim": False},
            [
                (b"0.5",),
                (b"none",),
                (b'd"e',),
                (b'"x"y',),
                (b"z",),
                (b"z",),
                INVALID,
                (b" NA ",),
                (b"none",),
                (b'"\xc3\xa9"',),
                "END",
            ],
        ),
        (
            [opkernel.string, opkernel.string],
            {"exclude_cols": [1]},
            [(b"1", b"0.5"), INVALID, INVALID, INVALID, INVALID, (b"-8", b"1e400"), "END"],
        ),
    ],
)
def test_records_of_csv(tmp_path, packs, defaults, options, expected):
    (tmp_path / "a").write_bytes(packs(TEXT))
    compression = None if packs(b"x") == b"x" else "GZIP"
    dataset = CsvDataset(tmp_path / "a", defaults, compression, **options)
    for count in range(len(expected)):
        assert resumed(dataset, count) == expected


def test_the_type_of_a_number_is_that_of_its_default(tmp_path):
    (tmp_path / "a").write_bytes(b"0.1,3\n,\n")
    first, second = CsvDataset(tmp_path / "a", [np.float32(0.1), np.int64(7)])
    assert (*first, *second) == (np.float32(0.1), 3, np.float32(0.1), 7)
    assert [type(value) for value in (*first, *second)] == [np.float32, np.int64] * 2


def test_files_one_after_the_other(tmp_path):
    names = []
    for name, text in (("open", b'"a",1\n"b'), ("empty", b""), ("one", b'x;"y;z"\n;')):
        (tmp_path / name).write_bytes(text)
        names.append(tmp_path / name)
    dataset = CsvDataset(names, ["", ""], field_delim=";")
    assert outcomes(iter(dataset)) == [INVALID, (b"x", b"y;z"), (b"", b""), "END"]
    with_header = CsvDataset(names, [opkernel.string], header=True, field_delim=";")
    assert outcomes(iter(with_header)) == [INVALID, INVALID, INVALID, "END"]
    missing = CsvDataset([*names, tmp_path / "none"], ["", ""], field_delim=";")
    assert outcomes(iter(missing), 5)[3:] == [errors.NotFoundError] * 2


def test_a_record_that_is_longer_than_what_is_read_at_once(tmp_path):
    content = b'b""\n,' * 100_000
    (tmp_path / "a").write_bytes(b'a,"' + content + b'"\r\n1,2')
    expected = [(b"a", content.replace(b'""', b'"')), (b"1", b"2"), "END"]
    assert outcomes(iter(CsvDataset(tmp_path / "a", ["", ""]))) == expected


def test_odd_and_wrong_records_among_many_plain_lines(tmp_path):
    def line(i):
        odd = {900: f'{i},"t{i}",0.5', 901: f"x,t{i},0.5", 1700: f"{i},t{i}", 2500: f"{i},,"}
        return odd.get(i, f"{i},t{i},{i % 7}.5")

    def expected(i):
        odd = {900: (i, b"t900", 0.5), 901: INVALID, 1700: INVALID, 2500: (i, b"none", -1.0)}
        return odd.get(i, (i, b"t%d" % i, i % 7 + 0.5))

    ends = ["\n", "\r\n", "\r"]
    text = "".join(line(i) + ends[i // 50 % 3] for i in range(4000))
    (tmp_path / "a").write_text(text, newline="")
    dataset = CsvDataset(tmp_path / "a", [opkernel.int32, "none", np.array([-1], np.float32)])
    outcomes_of_all = [*map(expected, range(4000)), "END"]
    assert outcomes(iter(dataset), 5000) == outcomes_of_all
    for count in (1, 899, 901, 902, 1500, 2501, 4000):
        elements, again = iter(dataset), iter(dataset)
        outcomes(elements, count)
        again.restore(elements.save())
        assert outcomes(again, 5000) == outcomes_of_all[count:]


def test_an_element_of_many_plain_lines_has_scalars(tmp_path):
    (tmp_path / "a").write_text("7,word\n" * 10)
    first = next(iter(CsvDataset(tmp_path / "a", [opkernel.int32, opkernel.string]).batch(10)))
    assert [(one.dtype, one.tolist()) for one in first] == [
        (np.int32, [7] * 10),
        (object, [b"word"] * 10),
    ]


@pytest.mark.parametrize(
    ("defaults", "options", "message"),
    [
        ([""], {"compression_type": "ZIP"}, "Unsupported compression_type"),
        ([""], {"buffer_size": 0}, "buffer_size should be positive"),
        ([""], {"field_delim": "::"}, "field_delim should be only 1 char"),
        ([""], {"select_cols": [0, 1]}, "select_cols should match output size"),
        (["", ""], {"select_cols": [1, 1]}, "strictly increasing"),
        (["", ""], {"exclude_cols": [-1]}, "non-negative"),
        ([""], {"select_cols": [0], "exclude_cols": [1]}, "should be empty"),
        ([["", ""]], {}, "There should only be 1 default per field"),
    ],
)
def test_what_cannot_be_read_as_csv(defaults, options, message):
    with pytest.raises(INVALID, match=message):
        CsvDataset("a", defaults, **options)


@pytest.fixture
def database(tmp_path):
    with sqlite3.connect(tmp_path / "data") as connection:
        connection.execute("CREATE TABLE t (n, x)")
        rows = [(1, 2.5), (300, "12x"), (-1, b"\xff\x00"), (2**63 - 1, None), (-(2**63), "é")]
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    connection.close()
    return tmp_path / "data"


def rows_of(database, query, *types):
    return SqlDataset("sqlite", database, query, types)


@pytest.mark.parametrize(
    ("dtype", "numbers", "values"),
    [
        ("int64", [1, 300, -1, 2**63 - 1, -(2**63)], [2, 12, 0, 0, 0]),
        ("uint8", [1, 44, 255, 255, 0], [2, 12, 0, 0, 0]),
        ("bool", [True] * 5, [True, True, False, False, False]),
        ("float64", [1.0, 300.0, -1.0, 2.0**63, -(2.0**63)], [2.5, 12.0, 0.0, 0.0, 0.0]),
        (
            "string",
            [b"1", b"300", b"-1", b"9223372036854775807", b"-9223372036854775808"],
            [b"2.5", b"12x", b"\xff\x00", b"", b"\xc3\xa9"],
        ),
    ],
)
def test_types_of_columns(database, dtype, numbers, values):
    kind = getattr(opkernel, dtype)
    dataset = rows_of(database, "SELECT n, x FROM t", kind, kind)
    expected = [*zip(numbers, values, strict=True), "END"]
    for count in range(6):
        assert resumed(dataset, count) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT abs(n) FROM t", [(1,), (300,), (1,), (2**63 - 1,), errors.UnknownError, "END"]),
        ("SELECT n FROM t ORDER BY n LIMIT 1; SELECT 2", [(-(2**63),), "END"]),
        ("SELECT ';', n FROM t", [INVALID, INVALID]),
        ("SELECT 5 -- ; no end", [(5,), "END"]),
        ("SELECT none FROM t", [errors.UnknownError] * 2),
        ("SELECT randomblob(2000000000)", [errors.ResourceExhaustedError, "END"]),
        ("", [INVALID] * 2),
        ("DELETE FROM t", [INVALID] * 2),
        ("ATTACH 'other' AS o", [INVALID] * 2),
    ],
)
def test_queries(database, query, expected):
    content = database.read_bytes()
    dataset = rows_of(database, query, opkernel.int64)
    assert outcomes(iter(dataset), len(expected)) == expected
    assert database.read_bytes() == content
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_a_database_with_a_log_is_read_without_writing(tmp_path):
    writer = sqlite3.connect(tmp_path / "data")
    writer.executescript("PRAGMA journal_mode=wal; CREATE TABLE t (n); INSERT INTO t VALUES (1)")
    names = sorted(path.name for path in tmp_path.iterdir())
    dataset = rows_of(tmp_path / "data", "SELECT n FROM t", opkernel.int64)
    assert outcomes(iter(dataset)) == [(1,), "END"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    writer.close()
    assert outcomes(iter(dataset)) == [(1,), "END"]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_what_is_no_database(tmp_path):
    (tmp_path / "text").write_text("no database " * 100)
    dataset = rows_of(tmp_path / "text", "SELECT 1 FROM t", opkernel.int64)
    assert outcomes(iter(dataset), 2) == [INVALID, INVALID]
    dataset = rows_of(tmp_path / "none", "SELECT 1", opkernel.int64)
    assert outcomes(iter(dataset), 2) == [errors.NotFoundError] * 2  # TensorFlow makes the file
    with pytest.raises(INVALID, match="sqlite"):
        SqlDataset("mysql", tmp_path / "none", "SELECT 1", [opkernel.int64])
    with pytest.raises(INVALID, match="must be one of"):
        rows_of(tmp_path / "none", "SELECT 1", opkernel.float32)


def test_a_session_asks_the_database_that_it_may_read(database, tmp_path):
    with opkernel.Graph().as_default() as graph:
        name = opkernel.placeholder(opkernel.string, [])
        dataset = rows_of(name, "SELECT count(*) FROM t", opkernel.int64)
        iterator = opkernel.data.make_initializable_iterator(dataset)
        (count,) = iterator.get_next()
    given = {name: str(database).encode()}
    with opkernel.Session(graph) as session:
        session.run(iterator.initializer, given)
        with pytest.raises(errors.PermissionDeniedError):
            session.run(count)
    with opkernel.Session(graph, permissions=opkernel.Permissions(read=[tmp_path])) as session:
        session.run(iterator.initializer, given)
        assert session.run(count) == 5


def test_a_query_ends_with_the_time_of_its_step():
    numbers = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)"
    with opkernel.Graph().as_default() as graph:
        dataset = rows_of(":memory:", f"{numbers} SELECT max(n) FROM t", opkernel.int64)
        iterator = opkernel.data.make_initializable_iterator(dataset)
        (last,) = iterator.get_next()
    with opkernel.Session(graph) as session:
        session.run(iterator.initializer)
        for _ in range(2):
            with pytest.raises(errors.DeadlineExceededError):
                session.run(last, options=opkernel.RunOptions(timeout_in_ms=100))
