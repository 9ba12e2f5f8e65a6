"""TensorFlow's answers: what its own loaders make of a SavedModel."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tests.interop import (
    image_models,
    keras_models,
    module_models,
    quantized_models,
    random_models,
    random_session_models,
    session_models,
    signal_models,
    text_models,
)
from tests.interop.calls import Call, Parts, map_leaves, part_of, plain

v1 = tf.compat.v1

OBJECTS = {
    **module_models.MODELS,
    **keras_models.MODELS,
    **text_models.MODELS,
    **image_models.MODELS,
    **random_models.MODELS,
    **signal_models.MODELS,
    **quantized_models.MODELS,
}
"""What saves models of TF2."""

SESSIONS = {**session_models.MODELS, **random_session_models.MODELS}
"""What saves models of TF1."""


def theirs(value: Any) -> Any:
    """Arguments as TensorFlow takes them."""
    return map_leaves(_tensor, value)


def _tensor(value: Any) -> Any:
    if isinstance(value, Parts):
        first, *rest = value.parts
        if value.kind == "ragged":
            return tf.RaggedTensor.from_nested_row_splits(first, rest)
        return tf.SparseTensor(first, *rest)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return tf.constant(value.tolist(), tf.string)
    return tf.constant(value) if isinstance(value, np.ndarray | np.generic) else value


def answer(model: Any, call: Call) -> Any:
    """The result of a call of a model that TensorFlow has loaded."""
    return plain(part_of(model, call.path)(*theirs([*call.args]), **theirs(dict(call.kwargs))))


def session_answers(directory: str, calls: Sequence[Call]) -> list[Any]:
    """The results of calls of signatures, one after the other, in a session of TF1."""
    with tf.Graph().as_default(), v1.Session() as session:
        definitions = v1.saved_model.load(session, ["serve"], directory).signature_def
        return [_run(session, definitions[call.path.partition(".")[2]], call) for call in calls]


def _run(session: Any, definition: Any, call: Call) -> Any:
    feeds: dict[str, Any] = {}
    for key, value in call.kwargs.items():
        names = _names(definition.inputs[key])
        parts = value.parts if isinstance(value, Parts) else [value]
        feeds.update(zip([names] if isinstance(names, str) else names, parts, strict=True))
    return plain(session.run({k: _names(i) for k, i in definition.outputs.items()}, feeds))


def _names(info: Any) -> Any:
    if info.WhichOneof("encoding") != "coo_sparse":
        return info.name
    sparse = info.coo_sparse
    return [sparse.indices_tensor_name, sparse.values_tensor_name, sparse.dense_shape_tensor_name]
