"""The same objects made of opkernel's classes, or of TensorFlow's."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Pair(NamedTuple):
    first: Any
    second: Any


def everything(module: Callable[[], Any], variable: Callable[..., Any]) -> Any:
    """A module with all that can be saved: types, ranks, containers, shared objects, cycles, odd names."""
    model: Any = module()
    model.z = variable(np.array([1, 2], np.float32), name="z")
    model.a = variable(np.int64(3), name="a", trainable=False)
    model.empty_list, model.empty_dict, model.empty_tuple = [], {}, ()
    model.numbers, model.text, model.array = [1, 2], "text", np.ones(3)
    model.named = {"b": model.z, "a": model.a, "x/y.z": variable(np.float64(1), name="q")}
    model.ordered = OrderedDict([("k", model.a), ("j", 1)])
    model.tuple, model.plain_tuple = (model.z, 3), (1, 2)
    model.pair = Pair(model.z, model.a)
    model.layers = [module(), {"deep": [model.z]}, (model.a,)]
    model.layers[0].half = variable(np.zeros((2, 0, 3), np.float16), name="half")
    model.itself = model
    model._private = variable([b"x", b"yy" * 100], name="strings")
    model.flag = variable(np.array([[True], [False]]), name="flag")
    return model
