"""Options of datasets. Literals are TensorFlow's."""

import copy
import pickle
from typing import Any

import pytest

import opkernel
from opkernel import errors
from opkernel.data import Dataset, Options


def options_with(**values: Any) -> Options:
    options = Options()
    for name, value in values.items():
        setattr(options, name, value)
    return options


LOOSE = options_with(deterministic=False, experimental_slack=True, dataset_name="x")
STRICT = options_with(deterministic=True)


def test_options_are_kept_and_merged() -> None:
    dataset = Dataset.range(3).with_options(LOOSE)
    assert [int(one) for one in dataset] == [0, 1, 2]
    assert dataset.options() == LOOSE
    assert dataset.map(lambda x: x).options().deterministic is False
    both = dataset.with_options(STRICT).options()
    assert (both.deterministic, both.dataset_name) == (True, "x")
    zipped = Dataset.zip((dataset, Dataset.range(3).with_options(STRICT)))
    assert zipped.options() == both == LOOSE.merge(STRICT)
    assert Dataset.range(2).options() == Options()
    assert LOOSE != STRICT


def test_options_of_tensorflow() -> None:
    written = b"\x08\x00\x12\x00\x1a\x00 \x01*\x00:\x00R\x01xb\x00"
    assert Options.parsed(written) == LOOSE
    with pytest.raises(errors.InvalidArgumentError):
        Options.parsed(b"\x08")
    flags = options_with(experimental_symbolic_checkpoint=True, experimental_warm_start=True)
    assert flags.serialized() == b"@\x01H\x01"


def test_what_is_not_set_is_none() -> None:
    options = Options()
    assert options.deterministic is None
    assert options.dataset_name is None
    assert repr(options) == "<opkernel.data.Options>"
    options.experimental_deterministic = True
    assert options == STRICT
    assert repr(options) == "<opkernel.data.Options deterministic=True>"


def test_copies() -> None:
    assert copy.deepcopy(LOOSE) == pickle.loads(pickle.dumps(LOOSE)) == LOOSE
    changed = copy.copy(STRICT)
    changed.dataset_name = "y"
    assert STRICT.dataset_name is None


def test_wrong_options() -> None:
    with pytest.raises(AttributeError, match="deterministic"):
        options_with(deterministi=True)
    with pytest.raises(TypeError, match="deterministic"):
        options_with(deterministic=1)
    with pytest.raises(ValueError, match="with_options"):
        Dataset.range(3).options().deterministic = True
    with opkernel.Graph().as_default():
        dataset = Dataset.range(3).with_options(STRICT)
        with pytest.raises(errors.FailedPreconditionError):
            dataset.options()
