import json
import os
import threading
from types import SimpleNamespace
from typing import Any

import click
import pytest

from opkernel.cli.limits import progress
from opkernel.cli.output import counted, echo, one_line, print_json, print_table, styled
from opkernel.cli.predict import RowCount


def test_json_has_a_line_for_each_item(capsys: pytest.CaptureFixture[str]):
    print_json({"a": [1, 2], "b": {}})
    printed = capsys.readouterr().out
    assert printed == '{\n  "a": [1, 2],\n  "b": {}\n}\n'
    print_json([{"a": 1}, {"a": 2}])
    assert capsys.readouterr().out == '[\n  {"a": 1},\n  {"a": 2}\n]\n'


@pytest.mark.parametrize("empty", [[], {}])
def test_empty_json(capsys: pytest.CaptureFixture[str], empty):
    print_json(empty)
    assert json.loads(capsys.readouterr().out) == empty


def test_tables_are_aligned_and_leave_out_empty_columns(capsys: pytest.CaptureFixture[str]):
    print_table("Things", ("name", "empty", "value"), [("a", "", 1), ("longer", "", "[x]")])
    assert capsys.readouterr().out == ("Things\n  name    value\n  a       1\n  longer  [x]\n")


def test_a_table_without_rows_keeps_its_columns(capsys: pytest.CaptureFixture[str]):
    print_table("Nothing", ("name", "value"), [])
    assert capsys.readouterr().out == "Nothing\n  name  value\n"


def test_tables_on_a_terminal_are_as_wide_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((40, 10)))
    print_table("Wide", ("name", "value"), [("[bold]a[/bold]", "v " * 40)])
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert "Wide" in lines[0]
    assert max(map(len, lines)) <= 40
    assert "[bold]a[/bold]" in lines[2], "names are no markup"


def test_what_steers_terminals_is_escaped(capsys: pytest.CaptureFixture[str]):
    echo("plain é")
    echo("\x1b[2J\r\n\udcff\x9b\u202e\u2028\0\x7f")
    echo("a", one_line("b\nc"))
    assert capsys.readouterr().out == (
        "plain é\n\\x1b[2J\\r\n\\udcff\\x9b\\u202e\\u2028\\x00\\x7f\nab\\nc\n"
    )


def test_only_our_colours_reach_terminals():
    assert styled(styled("\x1b[2J", bold=True), "\x1b[0m") == "\x1b[1m\\x1b[2J\x1b[0m\\x1b[0m"
    assert styled(f"{styled('a', fg='red')}") == "\\x1b[31ma\\x1b[0m", "it is a str like others now"


def test_counted():
    assert [counted(n, "node") for n in (0, 1, 2345)] == ["0 nodes", "1 node", "2,345 nodes"]


def test_long_work_is_announced_on_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("opkernel.cli.limits._TICK_S", 0.01)
    monkeypatch.setattr("opkernel.cli.limits.time.monotonic", lambda: 7.0)
    with progress("Waiting"):
        pass
    assert capsys.readouterr().err == "", "it is no terminal"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    shown = threading.Event()

    def width() -> int:
        shown.set()
        return 79

    monkeypatch.setattr("opkernel.cli.limits._terminal_width", width)
    with progress("Waiting"):
        shown.wait()
    printed = capsys.readouterr().err
    assert printed.startswith("\rWaiting ... 0 s")
    assert printed.endswith(f"\r{' ' * len('Waiting ... 0 s')}\r"), "the line is cleared"


def test_logs_get_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("opkernel.cli.limits._TICK_OF_LOGS_S", 0.01)
    told = threading.Semaphore(0)

    def stand(room: int | None) -> str:
        told.release()
        return f": {room}"

    with progress("Counting", stand):
        for _ in range(2):
            told.acquire()
    assert capsys.readouterr().err.startswith("Counting: None\nCounting: None\n")


def test_what_is_told_of_rows(monkeypatch: pytest.MonkeyPatch):
    seconds = iter([10.0, 12.0, 14.0])
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    done: Any = SimpleNamespace(rows=0, total=8000, skipped=[])
    tell = RowCount(done)
    assert tell(None) == ": 0 of 8,000 rows"
    done.rows, done.skipped = 2000, [(7, None, "")]
    text = ": 2,000 of 8,000 rows, 1 failed, 1,000 rows/s, 6 s left"
    assert tell(len(text) + 10) == text, "there is no room for a bar"
    monkeypatch.setattr("time.monotonic", lambda: 12.0)
    assert tell(len(text) + 11) == f" [##------]{text}"
    assert tell(200) == f" [{'#' * 6}{'-' * 18}]{text}"
