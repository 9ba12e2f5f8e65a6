"""SqlDataset: the rows that a query of an SQLite database gives.

The database is only read: statements that do more than read are refused, and a file that does not exist is not made.
A state has the number of rows that were given; a restored pass runs the query again, and leaves these out.

Source: TensorFlow core/kernels/data/experimental/sql_dataset_op.cc, sql/sqlite_query_connection.cc, core/lib/db/sqlite.cc.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from opkernel import errors
from opkernel.device.allocation import current_allocation_limit
from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.file_errors import file_errors
from opkernel.kernel import Step
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.types import DataType, object_scalar

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SqlDataset"]

_IN_MEMORY = (b"", b":memory:")
_TYPES = {
    *(DataType.DT_STRING, DataType.DT_BOOL, DataType.DT_DOUBLE, DataType.DT_UINT8),
    *(DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32, DataType.DT_INT64),
    DataType.DT_UINT16,
}
_FIRST_STATEMENT = re.compile(
    r"""(?:'[^']*+(?:'|\Z)|"[^"]*+(?:"|\Z)|`[^`]*+(?:`|\Z)|\[[^]]*+(?:\]|\Z)|--[^\n]*+|/\*.*?(?:\*/|\Z)|[^;])*+""",
    re.DOTALL,
)
_STEPS_BETWEEN_LOOKS = 10_000
"""So many instructions of SQLite's machine run between two looks at the clock."""
_LONGEST = (1 << 31) - 1
_WAL_VERSION, _HEADER_BYTES = 2, 20
"""What bytes 18 and 19 of a database are if its changes go to a log beside it."""

_ERRORS: dict[int, type[OpError]] = {
    2: errors.InternalError,
    3: errors.PermissionDeniedError,
    4: errors.AbortedError,
    5: errors.UnavailableError,
    6: errors.UnavailableError,
    7: errors.UnavailableError,
    8: errors.FailedPreconditionError,
    9: errors.CancelledError,
    11: errors.DataLossError,
    12: errors.InvalidArgumentError,
    13: errors.ResourceExhaustedError,
    14: errors.InvalidArgumentError,
    15: errors.UnavailableError,
    18: errors.ResourceExhaustedError,
    19: errors.InvalidArgumentError,
    20: errors.FailedPreconditionError,
    21: errors.InternalError,
    22: errors.ResourceExhaustedError,
    23: errors.InvalidArgumentError,  # only reading is allowed
    25: errors.OutOfRangeError,
    26: errors.InvalidArgumentError,
}
"""The errors of SQLite's primary result codes; UnknownError for others."""
_ASKED_AGAIN = (errors.DeadlineExceededError, errors.CancelledError, InvalidArgumentError)
"""After these errors a pass is not over."""


def _sqlite() -> Any:
    """The module `sqlite3`, which some builds of Python lack."""
    try:
        import sqlite3
    except ImportError as error:
        raise UnimplementedError("SqlDataset needs a Python with the module sqlite3") from error
    return sqlite3


class _Query:
    """A query that is running.

    Args:
        dataset: What to ask.
        step: The step that asks.

    Attributes:
        step: The step that asks now.
        is_compiled: Whether the query is one that SQLite understands and may run.
    """

    def __init__(self, dataset: SqlDataset, step: Step) -> None:
        self.step, self.is_compiled, self._dataset = step, False, dataset
        self._interruption: BaseException | None = None
        self._failure: OpError | None = None
        self._rows: Any = None
        self._given = 0
        self._connection = dataset.connect()
        self._connection.text_factory = bytes
        self._connection.setlimit(_sqlite().SQLITE_LIMIT_LENGTH, _longest())
        self._connection.execute("PRAGMA trusted_schema=OFF")  # the file may be anybody's
        self._connection.set_authorizer(_may)
        self._connection.set_progress_handler(self._look, _STEPS_BETWEEN_LOOKS)

    def row(self) -> tuple[Any, ...] | None:
        """The next row; None at the end.

        The module computes a row ahead. Where that fails, this row is asked for alone, and the error is the next call's.

        Raises:
            InvalidArgumentError: the query does more than read, or has more or fewer columns than the dataset.
            OpError: it is wrong, or a row cannot be computed.
        """
        if self._failure is not None:
            raise self._failure
        if self._rows is None:
            self._begin()
        found: tuple[Any, ...] | None
        try:
            found = self._run(self._rows.fetchone)
        except _ASKED_AGAIN:
            raise
        except OpError as error:
            self._failure = error
            # on a line of its own, as the query may end with a comment
            one = f"SELECT * FROM ({self._dataset.query}\n) LIMIT 1 OFFSET {self._given}"
            found = self._execute(one).fetchone()
        self._given += 1
        return found

    def _begin(self) -> None:
        if self._dataset.query.strip():
            self._execute(f"EXPLAIN {self._dataset.query}")  # compiles it
        self.is_compiled = True
        self._rows = self._execute(self._dataset.query)
        columns, wanted = len(self._rows.description or ()), len(self._dataset.dtypes)
        if columns != wanted:
            raise InvalidArgumentError(
                f"The number of columns in query ({columns}) must match the number of elements in "
                f"output_types ({wanted})."
            )

    def cast(self, value: Any, kind: str) -> Any:
        """A value as SQLite converts it to TEXT, REAL or INTEGER."""
        return self._execute(f"SELECT CAST(? AS {kind})", (value,)).fetchone()[0]

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _execute(self, query: str, values: tuple[Any, ...] = ()) -> Any:
        return self._run(self._connection.execute, query, values)

    def _run(self, call: Any, *arguments: Any) -> Any:
        """Call SQLite.

        Raises:
            OpError: it fails, or the step has no more time.
        """
        sqlite, self._interruption = _sqlite(), None
        try:
            return call(*arguments)
        except (sqlite.Error, sqlite.Warning, ValueError, OverflowError) as error:
            if self._interruption is not None:
                raise self._interruption from None
            code = getattr(error, "sqlite_errorcode", 12)  # Python's own refusals have none
            error_type = _ERRORS.get(code & 0xFF, errors.UnknownError)
            raise error_type(f"SQLite [{code}]: {error}: {self._dataset.query}") from error

    def _look(self) -> bool:
        """Whether to interrupt the query: SQLite asks now and then, and forgets errors."""
        try:
            self.step.check()
            check_time("running a query")
        except BaseException as error:  # interrupts, too, end the query
            self._interruption = error
        return self._interruption is not None


def _longest() -> int:
    return max(min(current_allocation_limit(), _LONGEST), 1 << 16)


def _may(action: int, *facts: str | None) -> int:
    """Whether a statement may do something: only read."""
    sqlite = _sqlite()
    reads = (sqlite.SQLITE_SELECT, sqlite.SQLITE_READ, sqlite.SQLITE_FUNCTION)
    may = action in (*reads, sqlite.SQLITE_RECURSIVE)
    return int(sqlite.SQLITE_OK if may else sqlite.SQLITE_DENY)


class _SqlIterator(DatasetIterator):
    state = ("rows", "is_over")

    def start(self) -> None:
        self.rows, self.is_over = 0, False
        self._query: _Query | None = None

    def next(self, step: Step) -> Element | None:
        """The next row.

        Raises:
            OpError: the query is wrong, which each call says again, or a row fails, which ends the pass.
        """
        if self.is_over:
            return None
        try:
            element = self._element(step)
        except BaseException as error:
            ends = isinstance(error, OpError) and not isinstance(error, _ASKED_AGAIN)
            self.is_over = ends and self._query is not None and self._query.is_compiled
            self.close()  # a further call runs the query again
            raise
        self.rows += 1
        if element is None:
            self.is_over = True
            self.close()
        return element

    def _element(self, step: Step) -> Element | None:
        if self._query is None:
            self._query = _Query(self.dataset, step)
            for _ in range(self.rows):
                self._query.row()
        query = self._query
        query.step = step
        row = query.row()
        if row is None:
            return None
        pairs = zip(row, self.dataset.dtypes, strict=True)
        return tuple([_value(query, value, dtype) for value, dtype in pairs])

    def close(self) -> None:
        if self._query is not None:
            self._query.close()
        self._query = None


@dataset_op(
    "SqlDataset",
    "ExperimentalSqlDataset",
    doc="The rows that a query of an SQLite database gives.",
    traits="reads_files",
)
class SqlDataset(DatasetBase):
    """The rows of a query, with a component for each column.

    Attributes:
        query: The query: the first statement of the given text.
    """

    iterator_type = _SqlIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node.dtypes, node.shapes)
        if not _TYPES.issuperset(self.dtypes):
            names = ", ".join(sorted(dtype.name for dtype in _TYPES))
            raise InvalidArgumentError(f"Each element of `output_types` must be one of: {names}")
        if any(shape.rank != 0 for shape in self.shapes):
            raise InvalidArgumentError("Each element of `output_shapes` must be a scalar.")
        driver = node.scalar("driver_name")
        if driver != b"sqlite":
            raise InvalidArgumentError(
                f"The database type, {driver!r}, is not supported by SqlDataset. The set of "
                "supported databases is: {'sqlite'}."
            )
        self._source: bytes = node.scalar("data_source_name")
        text = node.scalar("query").partition(b"\0")[0].decode(errors="replace")
        statement = _FIRST_STATEMENT.match(text.lstrip("; \t\r\n\f"))
        self.query = statement[0] if statement else ""
        self._permissions = node.permissions

    def connect(self) -> sqlite3.Connection:
        """Open the database to read it.

        Raises:
            PermissionDeniedError: it may not be read.
            OpError: it cannot be opened.
        """
        place = ":memory:" if self._source in _IN_MEMORY else self._place()
        sqlite = _sqlite()
        try:
            connection: sqlite3.Connection = sqlite.connect(
                place, uri=True, timeout=0, isolation_level=None, check_same_thread=False
            )
        except sqlite.Error as error:
            name = os.fsdecode(self._source)
            raise InvalidArgumentError(f"Sqlite::Open({name}) failed: {error}") from error
        return connection

    def _place(self) -> str:
        """The URI of the database's file.

        A database whose changes go to a log beside it is read as it is where there is no log: SQLite would make one.
        """
        if self._source.startswith(b"file:"):
            raise UnimplementedError("SqlDataset takes the name of a database's file, no URI")
        name = os.fsdecode(self._source)
        with file_errors(name):
            descriptor = self._permissions.open_to_read(self._source)
            try:
                header = os.pread(descriptor, _HEADER_BYTES, 0)
            finally:
                os.close(descriptor)
        path = self._permissions.check_read(self._source)
        has_log = header[18:] == bytes([_WAL_VERSION]) * 2
        options = "immutable=1" if has_log and not os.path.exists(f"{path}-wal") else "mode=ro"
        return f"file:{quote(os.fsencode(path))}?{options}"


def _value(query: _Query, value: Any, dtype: DataType) -> Any:
    """The value of a column as SQLite and C convert it to a type."""
    if dtype is DataType.DT_STRING:
        if isinstance(value, int | float):
            value = query.cast(value, "TEXT")
        return object_scalar(b"" if value is None else value)
    if value is None:
        value = 0
    if dtype is DataType.DT_DOUBLE:
        return np.float64(query.cast(value, "REAL") if isinstance(value, bytes) else value)
    number = value if isinstance(value, int) else query.cast(value, "INTEGER")
    if dtype is DataType.DT_BOOL:
        return np.bool_(number != 0)
    return np.int64(number).astype(dtype.numpy_dtype)
