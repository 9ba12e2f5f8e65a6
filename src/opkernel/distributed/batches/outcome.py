"""What comes of a batch: its outputs, and the rows that failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opkernel import errors
from opkernel.distributed.batches.fitting import fitted
from opkernel.distributed.batches.mapped_model import MappedModel
from opkernel.distributed.batches.rows import Array, ArrayRows, Batch, Rows
from opkernel.errors import Code, InvalidArgumentError, OpError, as_op_error
from opkernel.opdef import UnregisteredOpError
from opkernel.records import dataclass
from opkernel.types import TensorShape

_OF_THE_MODEL = {Code.CANCELLED, Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE, Code.UNIMPLEMENTED}
"""The codes of errors that every row would meet."""

_KINDS: dict[Code, type[OpError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, OpError) and kind is not OpError
}


@dataclass(frozen=True)
class Failure:
    """Why a row has no outputs; `row` is None where it is the model that failed."""

    row: int | None
    code: Code
    message: str

    def error(self) -> OpError:
        """The error to raise for it."""
        where = "" if self.row is None else f"Row {self.row}: "
        return _KINDS.get(self.code, errors.UnknownError)(f"{where}{self.message}")


@dataclass(frozen=True)
class Outcome:
    """The outputs of the rows that did not fail, by name, and those that did."""

    outputs: Mapping[str, Array]
    failures: tuple[Failure, ...] = ()


def failed(error: Exception, row: int | None = None) -> Outcome:
    """No outputs, for this reason."""
    told = as_op_error(error)
    return Outcome({}, (Failure(row, told.code, told.message),))


def computed(model: MappedModel, batch: Batch) -> Outcome:
    """Read and run a batch; where it fails, its rows are run one by one."""
    rows = batch.rows
    try:
        if not rows.are_files:  # then none of them can be read, or fits, without the others
            rows = ArrayRows(fitted(rows.read(), model))
    except Exception as error:  # readers may raise anything
        return failed(error)
    try:
        return Outcome(_outputs(model, rows))
    except Exception as error:  # and so may kernels of users
        told = as_op_error(error)
        if told.code in _OF_THE_MODEL or isinstance(told, UnregisteredOpError):
            return failed(told)
        if len(rows) == 1:
            return failed(told, batch.first_row)
    return _joined(
        [_row(model, batch.first_row, rows, i) for i in range(len(rows))], batch.first_row
    )


def _row(model: MappedModel, first_row: int, rows: Rows, index: int) -> Outcome:
    try:
        return Outcome(_outputs(model, rows.part(index, index + 1)))
    except Exception as error:  # as above
        return failed(error, first_row + index)


def _outputs(model: MappedModel, rows: Rows) -> dict[str, Array]:
    outputs = {name: _array(value) for name, value in model.run(rows.read()).items()}
    for name, array in outputs.items():
        if array.shape[:1] != (len(rows),):
            raise InvalidArgumentError(
                f"Output {name!r} has shape {TensorShape(array.shape)} for {len(rows)} rows, and a "
                f"row of each output belongs to a row of the inputs"
            )
    return outputs


def _array(value: Any) -> Array:
    return np.asarray(value, object) if isinstance(value, bytes) else np.asarray(value)


def _joined(rows: list[Outcome], first_row: int) -> Outcome:
    """The outcomes of single rows as one; rows of another shape than the first cannot stand beside it."""
    good: list[Mapping[str, Array]] = []
    failures: list[Failure] = []
    for number, row in enumerate(rows, first_row):
        failures += row.failures
        if row.failures:
            continue
        if good and _shapes(row.outputs) != _shapes(good[0]):
            message = (
                f"Its outputs have shapes {_shapes(row.outputs)}, and the first {_shapes(good[0])}"
            )
            failures.append(Failure(number, Code.INVALID_ARGUMENT, message))
        else:
            good.append(row.outputs)
    names = good[0] if good else ()
    return Outcome({n: np.concatenate([one[n] for one in good]) for n in names}, tuple(failures))


def _shapes(outputs: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape[1:] for name, array in outputs.items()}
