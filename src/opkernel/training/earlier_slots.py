"""Slots in checkpoints of TF1's Savers, and of Keras 2 and TF1's optimisers in object graphs.

    w/Adam, w/Adam_1, beta1_power                             a Saver
    model/w/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/…         an object graph

Source: TensorFlow python/training/optimizer.py, slot_creator.py, adam.py, python/keras/optimizer_v2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.checkpoint import CheckpointReader
from opkernel.errors import InvalidArgumentError, NotFoundError

_VALUE = ".ATTRIBUTES/VARIABLE_VALUE"
_LEAST_POWER = 1e-30  # smaller ones have lost digits


class EarlierSlots(NamedTuple):
    """What TF1 and Keras 2 call an optimiser and its slots.

    Attributes:
        name: The name of TF1's optimiser, which begins the names of its slots.
        slots: The slots here in TF1's order, with their names in object graphs.
        optional: Those that need not be saved.
        betas: The factors whose powers Adam keeps.
        scale: What TF1's slots are multiplied by to be those of here.
    """

    name: str
    slots: Mapping[str, str]
    optional: Sequence[str] = ()
    betas: Sequence[float] = ()
    scale: float = 1.0


class SlotReader:
    """Reads slots and the number of steps from a checkpoint.

    Args:
        reader: The checkpoint.
        slots: What the optimiser calls its slots there.
        name: The name of the optimiser in the checkpoint; None for the usual one.
    """

    def __init__(self, reader: CheckpointReader, slots: EarlierSlots, name: str | None) -> None:
        self._reader, self._slots = reader, slots
        self.has_objects = any("/.OPTIMIZER_SLOT/" in key for key in reader)
        self._name = name or ("optimizer" if self.has_objects else slots.name)
        self._is_keras = f"{self._name}/iter/{_VALUE}" in reader

    def values(self, variable: str) -> dict[str, Any]:
        """The slots of a variable, of its name or path in the checkpoint.

        Raises:
            NotFoundError: the checkpoint lacks one.
        """
        found = {}
        for number, (slot, theirs) in enumerate(self._slots.slots.items()):
            if self.has_objects:
                key = f"{variable}/.OPTIMIZER_SLOT/{self._name}/{theirs}/{_VALUE}"
            else:
                key = f"{variable}/{self._name}" + (f"_{number}" if number else "")
            if key in self._reader or slot not in self._slots.optional:
                value = self._reader.get(key)
                scale = 1.0 if self._is_keras else self._slots.scale
                found[slot] = value if scale == 1 else value * np.asarray(scale, value.dtype)
        return found

    def iterations(self) -> int | None:
        """The number of steps; None where the checkpoint does not tell it.

        Raises:
            NotFoundError: the powers of Adam's factors are missing.
            InvalidArgumentError: they are no powers of these.
        """
        if self._is_keras:
            return int(self._reader.get(f"{self._name}/iter/{_VALUE}"))
        if self._slots.betas:
            return self._iterations_of_powers()
        return int(self._reader.get("global_step")) if "global_step" in self._reader else None

    def _iterations_of_powers(self) -> int:
        """The number of steps that Adam's powers tell: each is of one more than that."""
        for number, beta in enumerate(self._slots.betas, 1):
            power = float(self._power(number))
            if _LEAST_POWER < power < 1 and 0 < beta < 1:
                return max(round(math.log(power) / math.log(beta)) - 1, 0)
        raise InvalidArgumentError(
            f"The powers of beta_1 and beta_2 in {self._reader.path} do not tell the number of steps"
        )

    def _power(self, number: int) -> Any:
        name = f"beta{number}_power"
        if self.has_objects:
            return self._reader.get(f"{self._name}/{name}/{_VALUE}")
        found = [key for key in self._reader if key == name or key.endswith(f"/{name}")]
        if len(found) != 1:
            raise NotFoundError(f"{self._reader.path} has {len(found)} keys {name!r}, and not one")
        return self._reader.get(found[0])
