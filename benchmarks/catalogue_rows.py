"""What `catalogue.py` measures: the inputs of each row, and what is done with them.

A step is a function of the module of the raw ops, `opkernel.raw_ops` or `tf.raw_ops`, and of the inputs. Both
take the same names, so that both compute the same.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

Step = Callable[..., object]
Inputs = list[Any]

STRINGS, EXAMPLES, RECORDS, PHOTOGRAPHS, NUMBERS = 10**6, 10**5, 10**5, 100, 10**7
_HEIGHT, _WIDTH = 360, 480
_TEXT = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_LEARNT = b"Feature %d, \xc3\xa4hnlich wie \xe2\x82\xac %d"


class Row(NamedTuple):
    """A row of the table: the ratio of speeds that it aims at, its step, and how its inputs are made."""

    aim: float
    step: Step
    inputs: Callable[[], Inputs]


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


def strings_of(texts: list[bytes]) -> Any:
    """A vector of strings."""
    strings = np.empty(len(texts), object)
    strings[:] = texts
    return strings


# Strings


def _words() -> Inputs:
    """Words of 1 to 24 letters."""
    random = _random()
    letters = np.frombuffer(_TEXT, np.uint8)[random.integers(0, len(_TEXT), 24 * STRINGS)].tobytes()
    lengths = random.integers(1, 25, STRINGS).tolist()
    return [strings_of([letters[24 * i : 24 * i + n] for i, n in enumerate(lengths)])]


def _sentences() -> Inputs:
    """Four words each."""
    (words,) = _words()
    return [strings_of([b" ".join(words[i : i + 4]) for i in range(STRINGS - 4)])]


def _unicode_texts() -> Inputs:
    return [strings_of([_LEARNT % (i, i * i) for i in range(EXAMPLES)])]


def _lower(ops: Any, strings: Any) -> object:
    return ops.StringLower(input=strings, encoding="")


def _split(ops: Any, strings: Any) -> object:
    return ops.StringSplitV2(input=strings, sep=b" ", maxsplit=-1)


def _hash(ops: Any, strings: Any) -> object:
    return ops.StringToHashBucket(string_tensor=strings, num_buckets=1000)


def _hash_fast(ops: Any, strings: Any) -> object:
    return ops.StringToHashBucketFast(input=strings, num_buckets=1000)


def _hash_strong(ops: Any, strings: Any) -> object:
    return ops.StringToHashBucketStrong(input=strings, num_buckets=1000, key=[1, 2])


def _replace(pattern: str, rewrite: str, ops: Any, strings: Any) -> object:
    return ops.StaticRegexReplace(input=strings, pattern=pattern, rewrite=rewrite)


def _match(pattern: str, ops: Any, strings: Any) -> object:
    return ops.StaticRegexFullMatch(input=strings, pattern=pattern)


def _decode_unicode(ops: Any, strings: Any) -> object:
    return ops.UnicodeDecode(input=strings, input_encoding="UTF-8")


# Records


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes, as it stands in a message."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _example(label: int, values: bytes, name: bytes) -> bytes:
    """A tf.train.Example of an integer, eight floats and a text."""
    kinds = {
        b"label": _field(3, _field(1, _varint(label))),
        b"values": _field(2, _field(1, values)),
        b"name": _field(1, _field(1, name)),
    }
    features = [_field(1, _field(1, key) + _field(2, kind)) for key, kind in kinds.items()]
    return _field(1, b"".join(features))


def examples() -> Inputs:
    """Serialized Examples of an integer, eight floats and a text."""
    values = _random().random((EXAMPLES, 8), np.float32)
    texts = [_example(i % 1000, row.tobytes(), b"name %d" % i) for i, row in enumerate(values)]
    return [strings_of(texts)]


def parse(ops: Any, serialized: Any) -> Any:
    """The features of those Examples."""
    return ops.ParseExampleV2(
        serialized=serialized,
        names=np.empty(0, object),
        sparse_keys=np.empty(0, object),
        dense_keys=strings_of([b"label", b"name", b"values"]),
        ragged_keys=np.empty(0, object),
        dense_defaults=[np.empty(0, np.int64), np.empty(0, object), np.empty(0, np.float32)],
        num_sparse=0,
        sparse_types=[],
        ragged_value_types=[],
        ragged_split_types=[],
        dense_shapes=[[], [], [8]],
    )


def _parse_sparse(ops: Any, serialized: Any) -> object:
    return ops.ParseExampleV2(
        serialized=serialized,
        names=np.empty(0, object),
        sparse_keys=strings_of([b"label", b"name"]),
        dense_keys=np.empty(0, object),
        ragged_keys=strings_of([b"values"]),
        dense_defaults=[],
        num_sparse=2,
        sparse_types=[np.int64, np.bytes_],
        ragged_value_types=[np.float32],
        ragged_split_types=[np.int64],
        dense_shapes=[],
    )


def _records() -> Inputs:
    columns = _random().random((RECORDS, 2)).tolist()
    return [
        strings_of([b"%d,%.6f,%.9g,text %d" % (i, a, b, i) for i, (a, b) in enumerate(columns)])
    ]


def _decode_csv(ops: Any, records: Any) -> object:
    types = (np.int64, np.float32, np.float64, object)
    return ops.DecodeCSV(records=records, record_defaults=[np.empty(0, t) for t in types])


# Images


def _pictures() -> Any:
    """Smooth shapes with some noise, as photographs have: uint8 [n, height, width, 3]."""
    random = _random()
    y, x = np.mgrid[0 : 1 : _HEIGHT * 1j, 0 : 1 : _WIDTH * 1j]
    pictures = np.empty((PHOTOGRAPHS, _HEIGHT, _WIDTH, 3), np.uint8)
    for picture in pictures:
        for channel in range(3):
            a, b, c = random.uniform(2, 20, 3)
            shape = np.sin(a * x + b * y) + np.cos(c * (x - y) ** 2)
            noise = random.normal(0, 3, shape.shape)
            picture[..., channel] = np.clip(128 + 55 * shape + noise, 0, 255)
    return pictures


def _images() -> Inputs:
    return [*_pictures()]


def _files(name: str) -> Inputs:
    """The pictures as files; opkernel's are those of TensorFlow, byte by byte."""
    import opkernel.raw_ops

    encode = getattr(opkernel.raw_ops, name)
    return [np.asarray(encode(image=image)) for image in _pictures()]


JPEGS = partial(_files, "EncodeJpeg")


def _decode_jpeg(ops: Any, *files: Any) -> object:
    return [ops.DecodeJpeg(contents=file) for file in files]


def _decode_and_resize(ops: Any, *files: Any) -> object:
    return [
        ops.ResizeBilinear(
            images=ops.ExpandDims(input=ops.DecodeJpeg(contents=file), axis=0), size=[224, 224]
        )
        for file in files
    ]


def _decode_png(ops: Any, *files: Any) -> object:
    return [ops.DecodePng(contents=file) for file in files]


def _encode(name: str, ops: Any, *images: Any) -> object:
    encode = getattr(ops, name)
    return [encode(image=image) for image in images]


# Random numbers


def _no_inputs() -> Inputs:
    return []


def _stateless(name: str, ops: Any) -> object:
    key, counter = np.array([1], np.uint64), np.array([2, 3], np.uint64)
    return getattr(ops, name)(shape=[NUMBERS], key=key, counter=counter, alg=1, dtype=np.float32)


def _stateful(name: str, ops: Any) -> object:
    return getattr(ops, name)(shape=[NUMBERS], dtype=np.float32, seed=1, seed2=2)


# Matrices


def _matrices(*shape: int) -> Inputs:
    return [_random().standard_normal(shape, np.float32)]


def _positive(*shape: int) -> Inputs:
    """Symmetric matrices whose eigenvalues are positive."""
    (a,) = _matrices(*shape)
    return [a @ a.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)]


def _system(*shape: int) -> Inputs:
    (a,) = _matrices(*shape)
    return [a, a[..., :1].copy()]


def _decomposed(name: str, ops: Any, a: Any) -> object:
    return getattr(ops, name)(input=a)


def _solved(ops: Any, a: Any, b: Any) -> object:
    return ops.MatrixSolve(matrix=a, rhs=b)


_FACTORISATIONS: dict[str, tuple[Step, Callable[..., Inputs]]] = {
    "Cholesky": (partial(_decomposed, "Cholesky"), _positive),
    "Qr": (partial(_decomposed, "Qr"), _matrices),
    "Svd": (partial(_decomposed, "Svd"), _matrices),
    "Lu": (partial(_decomposed, "Lu"), _matrices),
    "MatrixInverse": (partial(_decomposed, "MatrixInverse"), _matrices),
    "MatrixSolve": (_solved, _system),
    "SelfAdjointEigV2": (partial(_decomposed, "SelfAdjointEigV2"), _positive),
}


# Fourier transforms, sparse and ragged tensors


def _complex(*shape: int) -> Inputs:
    return [_random().standard_normal((*shape, 2), np.float32).view(np.complex64)[..., 0]]


def _transformed(name: str, ops: Any, a: Any) -> object:
    return getattr(ops, name)(input=a)


def _rfft(ops: Any, a: Any) -> object:
    return ops.RFFT(input=a, fft_length=[a.shape[-1]])


def _sparse_matrix() -> Inputs:
    """10^6 entries of 10^4 x 10^4, and 32 dense columns."""
    random = _random()
    places = np.unique(random.integers(0, 10**8, 10**6))
    indices = np.stack([places // 10**4, places % 10**4], axis=1)
    values = random.random(len(places), np.float32)
    return [indices, values, np.array([10**4, 10**4]), random.random((10**4, 32), np.float32)]


def _sparse_times_dense(ops: Any, indices: Any, values: Any, shape: Any, b: Any) -> object:
    return ops.SparseTensorDenseMatMul(a_indices=indices, a_values=values, a_shape=shape, b=b)


def _sparse_reduced(ops: Any, indices: Any, values: Any, shape: Any, _: Any) -> object:
    return ops.SparseReduceSum(
        input_indices=indices, input_values=values, input_shape=shape, reduction_axes=[1]
    )


def _ragged() -> Inputs:
    """10^5 rows of up to 20 numbers."""
    random = _random()
    splits = np.concatenate([[0], np.cumsum(random.integers(0, 21, 10**5))])
    return [splits, random.random(int(splits[-1]), np.float32)]


def _ragged_to_dense(ops: Any, splits: Any, values: Any) -> object:
    return ops.RaggedTensorToTensor(
        shape=[-1, -1],
        values=values,
        default_value=np.float32(0),
        row_partition_tensors=[splits],
        row_partition_types=["ROW_SPLITS"],
    )


def _ragged_gathered(ops: Any, splits: Any, values: Any) -> object:
    rows = np.arange(len(splits) - 1)[::-1].copy()
    return ops.RaggedGather(
        params_nested_splits=[splits],
        params_dense_values=values,
        indices=rows,
        OUTPUT_RAGGED_RANK=1,
    )


def _rows() -> dict[str, Row]:
    jpegs, pngs = JPEGS, partial(_files, "EncodePng")
    rows = {
        "10^6 words, StringLower": Row(0.25, _lower, _words),
        "10^6 sentences, StringSplitV2": Row(0.25, _split, _sentences),
        "10^6 words, StringToHashBucket": Row(0.5, _hash, _words),
        "10^6 words, StringToHashBucketFast": Row(0.5, _hash_fast, _words),
        "10^6 sentences, StringToHashBucketFast": Row(0.5, _hash_fast, _sentences),
        "10^6 words, StringToHashBucketStrong": Row(0.5, _hash_strong, _words),
        "10^6 sentences, replace a space": Row(0.1, partial(_replace, " ", "_"), _sentences),
        "10^6 sentences, replace runs of digits": Row(
            0.1, partial(_replace, "[0-9]+", "#"), _sentences
        ),
        "10^6 sentences, replace with groups": Row(
            0.1, partial(_replace, r"(\w+) (\w+)", r"\2 \1"), _sentences
        ),
        "10^6 words, match [a-z]+[0-9]*": Row(0.1, partial(_match, "[a-z]+[0-9]*"), _words),
        "10^6 words, match (a|b).*": Row(0.1, partial(_match, "(a|b).*"), _words),
        "10^5 texts, UnicodeDecode": Row(0.25, _decode_unicode, _unicode_texts),
        "10^5 Examples, dense": Row(0.25, parse, examples),
        "10^5 Examples, sparse and ragged": Row(0.25, _parse_sparse, examples),
        "10^5 records, DecodeCSV": Row(0.1, _decode_csv, _records),
        "100 photographs, DecodeJpeg": Row(0.5, _decode_jpeg, jpegs),
        "100 photographs, DecodeJpeg and ResizeBilinear": Row(0.5, _decode_and_resize, jpegs),
        "100 photographs, EncodeJpeg": Row(0.5, partial(_encode, "EncodeJpeg"), _images),
        "100 photographs, DecodePng": Row(0.5, _decode_png, pngs),
        "100 photographs, EncodePng": Row(0.5, partial(_encode, "EncodePng"), _images),
    }
    for aim, end in ((0.5, "Uniform"), (0.25, "Normal")):
        stateful = {"Uniform": "RandomUniform", "Normal": "RandomStandardNormal"}[end]
        name = f"StatelessRandom{end}V2"
        rows[f"10^7 numbers, {name}"] = Row(aim, partial(_stateless, name), _no_inputs)
        rows[f"10^7 numbers, {stateful}"] = Row(aim, partial(_stateful, stateful), _no_inputs)
    for name, (step, make) in _FACTORISATIONS.items():
        rows[f"1,000 of 8 x 8, {name}"] = Row(0.25, step, partial(make, 1000, 8, 8))
    for name, (step, make) in _FACTORISATIONS.items():
        rows[f"1,000 x 1,000, {name}"] = Row(0.25, step, partial(make, 1000, 1000))
    rows |= {
        "10^6 numbers, FFT": Row(0.5, partial(_transformed, "FFT"), partial(_complex, 10**6)),
        "1,000 x 1,000, FFT2D": Row(
            0.5, partial(_transformed, "FFT2D"), partial(_complex, 1000, 1000)
        ),
        "10^6 numbers, RFFT": Row(0.5, _rfft, partial(_matrices, 10**6)),
        "10^6 entries, SparseTensorDenseMatMul": Row(0.5, _sparse_times_dense, _sparse_matrix),
        "10^6 entries, SparseReduceSum": Row(0.5, _sparse_reduced, _sparse_matrix),
        "10^5 ragged rows, RaggedTensorToTensor": Row(0.25, _ragged_to_dense, _ragged),
        "10^5 ragged rows, RaggedGather": Row(0.25, _ragged_gathered, _ragged),
    }
    return rows


ROWS = _rows()


def step_of(name: str, system: Any, inputs: Inputs) -> Callable[[], object]:
    """The step of a row, by the raw ops of `opkernel` or `tensorflow`."""
    return partial(ROWS[name].step, system.raw_ops, *inputs)
