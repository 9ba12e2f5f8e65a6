"""What to do with a Keras file (.keras, .h5): a recipe that names what this file needs.

A Keras file has the configuration of layers as JSON, beside the weights: in a .keras archive as `config.json`, in an
HDF5 file as the attribute `model_config`. HDF5 stores the text of an attribute in one piece, so it is found without
the library.

Source: Keras src/saving/saving_lib.py, src/legacy/saving/legacy_h5_format.py.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from opkernel.escaping import json_value
from opkernel.records import dataclass

_MOST_BYTES = 16 << 20
"""A configuration is no larger."""
_CONFIG_NAME = b"model_config"
_OBJECT = re.compile(rb'\{"(?:class_name|module|config|name)": ')
_MOST_OBJECTS = 10
"""So many places are looked at for the beginning of the configuration."""

_LAYERS = frozenset(
    re.findall(
        r"\w+",
        """
    Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D
    AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add AdditiveAttention AlphaDropout Attention Average
    AveragePooling1D AveragePooling2D AveragePooling3D BatchNormalization BatchNormalizationV1 Bidirectional
    CategoryEncoding CenterCrop Concatenate Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose
    ConvLSTM1D ConvLSTM2D ConvLSTM3D Cropping1D Cropping2D Cropping3D CuDNNGRU CuDNNLSTM Dense DenseFeatures
    DepthwiseConv1D DepthwiseConv2D Discretization Dot Dropout ELU EinsumDense Embedding Flatten Functional GRU GRUCell
    GaussianDropout GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D
    GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D GroupNormalization GroupQueryAttention HashedCrossing
    Hashing Identity InputLayer IntegerLookup LSTM LSTMCell Lambda LayerNormalization LeakyReLU LocallyConnected1D
    LocallyConnected2D Masking MaxPooling1D MaxPooling2D MaxPooling3D Maximum MelSpectrogram Minimum Model
    MultiHeadAttention Multiply Normalization PReLU Permute RMSNormalization RNN RandomBrightness RandomContrast
    RandomCrop RandomFlip RandomHeight RandomRotation RandomTranslation RandomWidth RandomZoom ReLU RepeatVector
    Rescaling Reshape Resizing SeparableConv1D SeparableConv2D Sequential SimpleRNN SimpleRNNCell SlicingOpLambda
    Softmax SpatialDropout1D SpatialDropout2D SpatialDropout3D SpectralNormalization StackedRNNCells STFTSpectrogram
    StringLookup Subtract TFOpLambda TFSMLayer TensorFlowOpLayer TextVectorization ThresholdedReLU TimeDistributed
    UnitNormalization UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D ZeroPadding2D ZeroPadding3D
    """,
    )
)
"""Keras' own layers, of Keras 2 and 3; others are the author's."""
_OF_KERAS_2 = frozenset(
    {
        "BatchNormalizationV1", "CuDNNGRU", "CuDNNLSTM", "DenseFeatures", "LocallyConnected1D",
        "LocallyConnected2D", "RandomHeight", "RandomWidth", "SlicingOpLambda", "TFOpLambda",
        "TensorFlowOpLayer", "ThresholdedReLU",
    }
)  # fmt: skip


def keras_advice(path: str | os.PathLike[str], *, is_archive: bool) -> str:
    """What to do with a Keras file, as the end of a message.

    Args:
        path: The file, a .keras archive or an HDF5 file.
        is_archive: Whether it is a .keras archive.
    """
    config = _config_of_archive(path) if is_archive else _config_of_hdf5(path)
    if config is None:
        return (
            "; it has no configuration of a Keras model, weights at most. Where Keras is installed, build the model "
            "by its Python code, then:\n"
            f"    model.load_weights({str(path)!r})\n"
            "    model.export('saved_model')\n"
            "and load the directory saved_model"
        )
    found = _KerasModel.of_config(config)
    arguments = f", compile=False{found.custom_objects}{found.safe_mode}"
    return (
        "; export it where Keras is installed:\n"
        f"    model = keras.saving.load_model({str(path)!r}{arguments})\n"
        "    model.export('saved_model')\n"
        f"and load the directory saved_model{found.notes}"
    )


@dataclass(frozen=True)
class _KerasModel:
    """What of a model Keras needs help with.

    Attributes:
        custom: The classes of layers that are not Keras' own.
        lambdas: The names of the Lambda layers.
        old: The classes of layers that only Keras 2 has.
    """

    custom: tuple[str, ...]
    lambdas: tuple[str, ...]
    old: tuple[str, ...]

    @classmethod
    def of_config(cls, config: Any) -> _KerasModel:
        """What the configuration of a model says."""
        layers = [*_layers(config)]
        kinds = [str(one["class_name"]) for one in layers]
        return cls(
            tuple(dict.fromkeys(one for one in kinds if one not in _LAYERS)),
            tuple(_layer_name(one) for one in layers if one["class_name"] == "Lambda"),
            tuple(dict.fromkeys(one for one in kinds if one in _OF_KERAS_2)),
        )

    @property
    def custom_objects(self) -> str:
        """The argument that names the author's classes."""
        names = [(one, one.rpartition(">")[2]) for one in self.custom]
        pairs = ", ".join(f"{one!r}: {name}" for one, name in names if name.isidentifier())
        return f", custom_objects={{{pairs}}}" if pairs else ""

    @property
    def safe_mode(self) -> str:
        """The argument that lets Keras run Python code of the file."""
        return ", safe_mode=False" if self.lambdas else ""

    @property
    def notes(self) -> str:
        """Why the recipe has these arguments."""
        notes = []
        if self.custom:
            notes.append(f"Import the author's classes first: {_listed(self.custom)}.")
        if self.lambdas:
            notes.append(
                f"The Lambda layers {_listed(self.lambdas)} hold Python code, which safe_mode=False runs: trust the file first."
            )
        if self.old:
            notes.append(
                f"Keras 3 has no {_listed(self.old)}: use Keras 2 (pip install tf_keras, import tf_keras as keras)."
            )
        return "".join(f"\n{one}" for one in notes)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _layers(config: Any) -> Iterator[dict[str, Any]]:
    """The configurations of a model's layers, those within others too."""
    ahead = [config]
    while ahead:
        one = ahead.pop()
        if isinstance(one, list):
            ahead += reversed(one)
        elif isinstance(one, dict):
            if "class_name" in one and isinstance(one.get("config"), dict):
                yield one
                one = one["config"]
            wrapped = ("cells", "cell", "backward_layer", "layer", "layers")
            ahead += [one[key] for key in wrapped if key in one]


def _layer_name(layer: dict[str, Any]) -> str:
    return str(layer["config"].get("name", layer.get("name", "?")))


def _config_of_archive(path: str | os.PathLike[str]) -> Any | None:
    try:
        with zipfile.ZipFile(path) as archive, archive.open("config.json") as file:
            data = file.read(_MOST_BYTES)
    except (OSError, KeyError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error):
        return None  # the file is gone, damaged or encrypted
    with suppress(ValueError):
        return json_value(data)
    return None


def _config_of_hdf5(path: str | os.PathLike[str]) -> Any | None:
    """The configuration in an HDF5 file; None where it has none, and {} where it has one in another form."""
    pieces = _pieces_of_hdf5(path)
    found = filter(None, map(_object_at, pieces))
    return next(found, {}) if pieces else None


def _pieces_of_hdf5(path: str | os.PathLike[str]) -> list[bytes]:
    """The bytes from each place on where the configuration may begin; none where the file has no such attribute."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data.find(_CONFIG_NAME) < 0:
                return []
            starts = [one.start() for one in islice(_OBJECT.finditer(data), _MOST_OBJECTS)]
            return [data[start : start + _MOST_BYTES] for start in starts] or [b""]
    except (OSError, ValueError):  # it is gone, or empty
        return []


def _object_at(data: bytes) -> Any | None:
    """The JSON of a model's configuration at the beginning of some bytes; None where there is something else."""
    try:
        value, _ = json.JSONDecoder().raw_decode(data.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    config = value.get("config")
    return value if isinstance(config, dict | list) and "layers" in config else None
