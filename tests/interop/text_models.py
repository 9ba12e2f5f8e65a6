"""Models of texts and features: Keras' preprocessing layers, strings, parsed records, ragged tensors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tests.interop.calls import Call, ragged, sparse
from tests.interop.keras_models import exported
from tests.interop.module_models import numbers, spec

F32 = np.float32
MODELS: dict[str, Any] = {}
keras: Any = tf.keras
L: Any = keras.layers
TEXTS = [
    "The quick, brown fox!",
    "the LAZY dog  jumps",
    "",
    "Ünïcode fox — été (brown)",
    "fox fox dog",
]
"""A corpus with capitals, marks, empty texts and characters of several bytes."""


def words(*values):
    return np.array([one.encode() if isinstance(one, str) else one for one in values], object)


def model(build):
    """A model that is built with the same weights at each run; it gives the calls to compare."""

    def save(directory):
        keras.utils.set_random_seed(7)
        keras.backend.clear_session()
        return build(str(directory))

    MODELS[build.__name__] = save
    return build


def layer(name, build, *inputs):
    """A model of one layer, or of a function of its inputs, which Keras exports."""

    def save(directory):
        keras.utils.set_random_seed(7)
        keras.backend.clear_session()
        specs = [
            L.Input(one.shape[1:], dtype="string" if one.dtype == object else one.dtype.name)
            for one in inputs
        ]
        specs_or_one = specs if len(specs) > 1 else specs[0]
        return exported(keras.Model(specs_or_one, build()(*specs)), str(directory), *inputs)

    MODELS[name] = save


def functions(
    models: dict[str, Any], **signatures: list[Any]
) -> Callable[[Callable[..., Any]], Any]:
    """A module of functions with these signatures: the decorated function gives them, the calls, and what to keep."""

    def register(build):
        def save(directory):
            root = tf.Module()
            made, calls, *root.kept = build(str(directory))
            for name, function in made.items():
                setattr(root, name, tf.function(function, input_signature=signatures[name]))
            called = [call.path.partition(".") for call in calls]
            served = {name: getattr(root, name) for kind, _, name in called if kind == "signatures"}
            tf.saved_model.save(root, str(directory), served)
            return calls

        models[build.__name__] = save
        return build

    return register


# Keras' layers.


def vectorization(**options):
    def build():
        made = L.TextVectorization(**options)
        made.adapt(TEXTS)
        return made

    return build


LINES = words(*TEXTS, "a cat and the fox").reshape(-1, 1)

VECTORIZATIONS: dict[str, dict[str, Any]] = {
    "text_to_ints": {"max_tokens": 8, "output_sequence_length": 4},
    "text_to_bigrams": {"ngrams": 2},
    "text_to_characters": {"split": "character", "standardize": "lower"},
    "text_to_multi_hot": {"output_mode": "multi_hot", "ngrams": (1, 3)},
    "text_to_counts": {"output_mode": "count", "standardize": "strip_punctuation"},
    "text_to_tf_idf": {"output_mode": "tf_idf", "pad_to_max_tokens": True, "max_tokens": 30},
    "text_as_it_is": {"standardize": None, "output_mode": "count"},
}
for name, options in VECTORIZATIONS.items():
    layer(name, vectorization(**options), LINES)


@functions(MODELS, tokens=[spec(None, dtype=tf.string)], total=[spec(None, dtype=tf.string)])
def text_to_ragged(directory):
    layer = L.TextVectorization(ragged=True)
    layer.adapt(TEXTS)
    table = tf.Variable(numbers(30, 3))

    def total(x):
        return tf.reduce_sum(tf.gather(table, layer(x)), axis=1)

    calls = [
        Call("tokens", [LINES[:, 0]]),
        Call("total", [LINES[:, 0]]),
        Call("signatures.total", [], {"x": LINES[:, 0]}),
    ]
    return {"tokens": lambda x: layer(x), "total": total}, calls, layer, table


@model
def text_classifier(directory):
    x = L.Input((1,), dtype="string", name="text")
    tokens = L.TextVectorization(max_tokens=12, output_sequence_length=6)
    tokens.adapt(TEXTS)
    y = L.Embedding(12, 4, mask_zero=True)(tokens(x))
    y = L.GlobalAveragePooling1D()(y)
    net = keras.Model(x, L.Dense(2, "softmax")(L.Dense(5, "relu")(y)))
    return exported(net, directory, LINES)


CITIES = words("rome", "oslo", "lima", "", "cairo", "rome").reshape(-1, 1)
VOCABULARY = ["rome", "lima", "cairo", "bonn"]
CODES = np.array([[7], [-3], [42], [0], [5]], np.int64)

for mode in ("int", "one_hot", "multi_hot", "count", "tf_idf"):
    weights = {"idf_weights": [0.5, 1.0, 1.5, 2.0]} if mode == "tf_idf" else {}
    layer(
        f"string_lookup_{mode}",
        lambda mode=mode, weights=weights: L.StringLookup(
            vocabulary=VOCABULARY, output_mode=mode, num_oov_indices=2, **weights
        ),
        CITIES,
    )
    weights = {"idf_weights": [0.5, 1.0, 1.5]} if mode == "tf_idf" else {}
    layer(
        f"integer_lookup_{mode}",
        lambda mode=mode, weights=weights: L.IntegerLookup(
            vocabulary=[42, 7, 5], output_mode=mode, num_oov_indices=2, **weights
        ),
        CODES,
    )
layer(
    "string_lookup_with_mask",
    lambda: L.StringLookup(vocabulary=VOCABULARY, mask_token="", max_tokens=9),
    CITIES,
)
layer(
    "string_lookup_inverted",
    lambda: L.StringLookup(vocabulary=VOCABULARY, invert=True),
    np.array([[0], [1], [4], [3]], np.int64),
)
layer(
    "integer_lookup_inverted",
    lambda: L.IntegerLookup(vocabulary=[42, 7, 5], invert=True),
    np.array([[0], [1], [3]], np.int64),
)
layer("hashing", lambda: L.Hashing(5), CITIES)
layer("hashing_with_salt", lambda: L.Hashing(50, salt=[133, 137], mask_value=""), CITIES)
layer("hashing_of_ints", lambda: L.Hashing(7, salt=3, output_mode="one_hot"), CODES)
layer(
    "hashed_crossing",
    lambda: lambda a, b: L.HashedCrossing(11, output_mode="one_hot")((a, b)),
    CITIES[:5],
    CODES,
)
layer("hashed_crossing_of_ints", lambda: lambda a, b: L.HashedCrossing(9)((a, b)), CODES, CODES)
layer(
    "category_encoding",
    lambda: (
        lambda x: [L.CategoryEncoding(6, mode)(x) for mode in ("one_hot", "multi_hot", "count")]
    ),
    np.array([[1], [5], [0]], np.int32),
)
layer(
    "discretization",
    lambda: (
        lambda x: [
            L.Discretization([-0.5, 0.0, 0.25], output_mode=mode)(x)
            for mode in ("int", "one_hot", "multi_hot", "count")
        ]
    ),
    np.array([[-0.5], [0.0], [0.3], [-9.0], [0.1]], F32),
)


def adapted_normalization():
    made = L.Normalization()
    made.adapt(numbers(20, 4) * 3)
    return made


layer("normalization", adapted_normalization, numbers(5, 4))
layer(
    "normalization_inverted",
    lambda: L.Normalization(mean=[1.0, 2.0], variance=[4.0, 9.0], invert=True),
    numbers(3, 2),
)


@model
def features(directory):
    """The columns of a table, each with its layer, and a network above."""
    city = L.Input((1,), dtype="string", name="city")
    code = L.Input((1,), dtype="int64", name="code")
    age = L.Input((2,), name="age")
    cities = L.StringLookup(vocabulary=VOCABULARY)
    codes = L.IntegerLookup(vocabulary=[42, 7, 5], output_mode="one_hot")
    parts = [
        L.Flatten()(L.Embedding(5, 3)(cities(city))),
        codes(code),
        L.HashedCrossing(8, output_mode="one_hot")((city, code)),
        L.Normalization(mean=[0.1, 0.2], variance=[2.0, 3.0])(age),
    ]
    hidden = L.Dense(6, "tanh")(L.Concatenate()(parts))
    net = keras.Model([city, code, age], L.Dense(1, "sigmoid")(hidden))
    return exported(net, directory, CITIES[:5], CODES, numbers(5, 2))


# Strings.

STRINGS = [spec(None, dtype=tf.string)]


@functions(MODELS, clean=STRINGS, cut=STRINGS, compare=STRINGS)
def strings(directory):
    def clean(x):
        low = tf.strings.lower(tf.strings.strip(x), encoding="utf-8")
        spaced = tf.strings.regex_replace(low, r"[^a-z0-9 ]+", "<\\0>")
        first = tf.strings.regex_replace(low, r"(\w)(\w)", r"\2\1", replace_global=False)
        return spaced, first, tf.strings.upper(low), tf.strings.regex_full_match(x, r".*fox.*")

    def cut(x):
        return {
            "bytes": tf.strings.length(x),
            "characters": tf.strings.length(x, unit="UTF8_CHAR"),
            "part": tf.strings.substr(x, 0, 3, unit="UTF8_CHAR"),
            "end": tf.strings.substr(x, -2, 2),
            "joined": tf.strings.join([x, x], "+"),
            "all": tf.strings.reduce_join(x, separator="|", axis=0, keepdims=True),
        }

    def compare(x):
        return (
            tf.strings.to_hash_bucket_fast(x, 100),
            tf.strings.to_hash_bucket_strong(x, 100, [1, 2]),
            tf.strings.to_hash_bucket(x, 100),
            tf.fingerprint(x),
            tf.equal(x, "ab"),
            tf.unique_with_counts(x),
        )

    texts = words(*TEXTS[:2], *TEXTS[3:])
    return {"clean": clean, "cut": cut, "compare": compare}, [
        Call("clean", [LINES[:, 0]]),
        Call("cut", [texts]),
        Call("compare", [words("ab", "cd", "ab", "\0")]),
        Call("signatures.clean", [], {"x": LINES[:, 0]}),
        Call("signatures.cut", [], {"x": texts}),
    ]


@functions(MODELS, numbers=STRINGS, texts=[spec(None), spec(None, dtype=tf.int64)], codes=STRINGS)
def strings_and_numbers(directory):
    def parsed(x):
        return {
            name: tf.strings.to_number(x, tf.as_dtype(name))
            for name in ("float32", "float64", "int32", "int64")
        }

    def texts(x, i):
        return (
            tf.strings.as_string(x, precision=3),
            tf.strings.as_string(x, scientific=True, width=12),
            tf.strings.as_string(i, width=6, fill="0"),
            tf.strings.format("x={}, i={}", (x, i), summarize=2),
            tf.strings.format("% and %", (x[0], i), placeholder="%"),
        )

    def codes(x):
        coded = tf.io.encode_base64(x, pad=True)
        return (
            coded,
            tf.io.decode_base64(coded),
            tf.io.decode_base64(tf.io.encode_base64(x)),
            tf.io.decode_raw(x, tf.int16, fixed_length=4),
            tf.strings.bytes_split(x),
            tf.strings.unicode_script(tf.strings.unicode_decode(x, "UTF-8").flat_values),
        )

    made = {"numbers": parsed, "texts": texts, "codes": codes}
    return made, [
        Call("numbers", [words("12", "-7", "0", "2147483647")]),
        Call("signatures.numbers", [], {"x": words("12", "-7", "0", "2147483647")}),
        Call("texts", [np.array([1.5, -2, 1e9, 1 / 3], F32), np.array([1, -20, 300])]),
        Call("codes", [words("abcd", "été!", "\xff\xfe1234")]),
    ]


@functions(MODELS, split=STRINGS, grams=STRINGS, skip=STRINGS)
def split_texts(directory):
    def split(x):
        parts = tf.strings.split(x)
        return parts, tf.strings.split(x, ","), tf.strings.split(x, " ", maxsplit=1).to_tensor("-")

    def grams(x):
        parts = tf.strings.split(x)
        padded = tf.strings.ngrams(parts, [1, 2], pad_values=("<s>", "</s>"), separator="_")
        return padded, tf.strings.ngrams(parts, 3, preserve_short_sequences=True)

    def skip(x):
        parts = tf.strings.split(x)
        reverse = tf.reverse(parts, [1])
        return tf.strings.reduce_join(reverse, axis=-1, separator=" "), parts.row_lengths()

    made = {"split": split, "grams": grams, "skip": skip}
    return made, [Call(name, [LINES[:, 0]]) for name in ("split", "grams", "skip")]


@functions(MODELS, decode=STRINGS, code=STRINGS, offsets=STRINGS)
def unicode(directory):
    def decode(x):
        return tf.strings.unicode_decode(x, "UTF-8").to_tensor(-1)

    def code(x):
        points = tf.strings.unicode_decode(x, "UTF-8", errors="replace", replacement_char=63)
        return (
            tf.strings.unicode_encode(points, "UTF-16-BE"),
            tf.strings.unicode_encode(points + 1, "UTF-8"),
            tf.strings.unicode_transcode(x, "UTF-8", "UTF-32-BE"),
            tf.strings.unicode_transcode(x, "US ASCII", "UTF-8", replacement_char=42),
        )

    def offsets(x):
        characters, starts = tf.strings.unicode_split_with_offsets(x, "UTF-8")
        points, other = tf.strings.unicode_decode_with_offsets(x, "UTF-8")
        return characters, starts, points, other

    made = {"decode": decode, "code": code, "offsets": offsets}
    return made, [Call(name, [LINES[:, 0]]) for name in ("decode", "code", "offsets")]


# Records.


def example(**values):
    def feature(value):
        if isinstance(value[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
        if isinstance(value[0], int):
            return tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        return tf.train.Feature(float_list=tf.train.FloatList(value=value))

    return tf.train.Features(feature={key: feature(value) for key, value in values.items()})


def examples():
    given = [
        example(x=[1.0, 2.0], n=[3], tags=[b"a", b"b"], at=[4, 1], weight=[0.5, 0.25], r=[1, 2, 3]),
        example(x=[3.0, 4.0], tags=[b"c"], at=[0], weight=[2.0]),
        example(x=[5.0, 6.0], n=[7], r=[9]),
    ]
    return words(*[tf.train.Example(features=one).SerializeToString() for one in given])


@functions(MODELS, parse=STRINGS, single=[spec(dtype=tf.string)], score=STRINGS)
def parsed_examples(directory):
    wanted = {
        "x": tf.io.FixedLenFeature([2], tf.float32),
        "n": tf.io.FixedLenFeature([], tf.int64, -1),
        "tags": tf.io.VarLenFeature(tf.string),
        "sparse": tf.io.SparseFeature("at", "weight", tf.float32, 6),
        "r": tf.io.RaggedFeature(tf.int64),
        "seq": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    }
    w = tf.Variable(numbers(2, 3))

    def score(x):
        found = tf.io.parse_example(x, wanted)
        side = tf.sparse.sparse_dense_matmul(found["sparse"], tf.ones([6, 3]))
        return {"y": found["x"] @ w + side, "n": found["n"]}

    made = {
        "parse": lambda x: tf.io.parse_example(x, wanted),
        "single": lambda x: tf.io.parse_single_example(x, wanted),
        "score": score,
    }
    return (
        made,
        [
            Call("parse", [examples()]),
            Call("single", [examples()[0]]),
            Call("score", [examples()]),
            Call("signatures.score", [], {"x": examples()}),
        ],
        w,
    )


@functions(MODELS, parse=STRINGS, single=[spec(dtype=tf.string)])
def parsed_sequences(directory):
    context = {"id": tf.io.FixedLenFeature([], tf.int64), "c": tf.io.VarLenFeature(tf.string)}
    lists = {
        "steps": tf.io.FixedLenSequenceFeature([2], tf.float32),
        "words": tf.io.VarLenFeature(tf.string),
        "r": tf.io.RaggedFeature(tf.int64),
    }

    def sequence(number, steps, **more):
        one = tf.train.SequenceExample(context=example(id=[number], **more))
        for values in steps:
            features = example(steps=[float(v) for v in values], words=[b"w"] * len(values), r=[1])
            for key, value in features.feature.items():
                one.feature_lists.feature_list[key].feature.append(value)
        return one.SerializeToString()

    made = {
        "parse": lambda x: tf.io.parse_sequence_example(x, context, lists),
        "single": lambda x: tf.io.parse_single_sequence_example(x, context, lists),
    }
    given = words(sequence(3, [(1, 2), (3, 4)], c=[b"x"]), sequence(4, [(5, 6)]))
    return made, [Call("parse", [given]), Call("single", [given[0]])]


@functions(MODELS, csv=STRINGS, json=STRINGS, raw=STRINGS)
def parsed_texts(directory):
    def csv(x):
        defaults = [tf.constant([], tf.float32), [7], ["none"], tf.constant([1], tf.int64)]
        return tf.io.decode_csv(x, defaults, na_value="NA"), tf.io.decode_csv(
            x, [[0.0], [4]], select_cols=[0, 3], use_quote_delim=True
        )

    def json(x):
        return tf.io.parse_example(
            tf.io.decode_json_example(x),
            {"a": tf.io.FixedLenFeature([2], tf.float32), "b": tf.io.VarLenFeature(tf.string)},
        )

    def raw(x):
        tensors = tf.map_fn(
            lambda one: tf.io.parse_tensor(one, tf.float32),
            tf.map_fn(lambda one: tf.io.serialize_tensor(tf.strings.to_number(one)), x),
            fn_output_signature=spec(dtype=tf.float32),
        )
        return tensors, tf.io.decode_raw(x, tf.uint8)

    text = '{"features": {"feature": {"a": {"floatList": {"value": [1, 2.5]}}%s}}}'
    made = {"csv": csv, "json": json, "raw": raw}
    return made, [
        Call("csv", [words('1.5,2,"a, ""b""",5', "-3,NA,,", "1e3,,x,0")]),
        Call("json", [words(text % "", text % ', "b": {"bytesList": {"value": ["eHk="]}}')]),
        Call("raw", [words("1.5", "-22", "3e5")[:1]]),
    ]


# Ragged and sparse tensors.

RAGGED = tf.RaggedTensorSpec([None, None], tf.int64)


@functions(
    MODELS, dense=[RAGGED], reduce=[RAGGED], embed=[RAGGED], change=[RAGGED], cross=[RAGGED, RAGGED]
)
def ragged_tensors(directory):
    table = tf.Variable(numbers(10, 3))

    def dense(x):
        return x.to_tensor(-1), x.to_tensor(0, shape=[4, 2]), x.to_sparse(), tf.shape(x.to_tensor())

    def reduce(x):
        return {
            name: getattr(tf, f"reduce_{name}")(x, axis=1)
            for name in ("sum", "max", "min", "prod", "mean")
        }

    def embed(x):
        found = tf.nn.embedding_lookup(table, x)
        pooled = tf.nn.safe_embedding_lookup_sparse(table, x.to_sparse(), combiner="sqrtn")
        return tf.reduce_mean(found, axis=1), pooled, found

    def change(x):
        stacked = tf.concat([x, tf.reverse(x, [1])], axis=1)
        kept = tf.ragged.boolean_mask(x, x > 3)
        return stacked, kept, tf.tile(x, [1, 2]), x[:, :2], x[1:, -1:], tf.sort(x.flat_values)

    def cross(x, y):
        return tf.ragged.cross([x, y]), tf.ragged.cross_hashed([x, y], 100, 7)

    given = ragged(np.array([3, 1, 4, 1, 5, 9]), [0, 2, 2, 5, 6])
    other = ragged(np.array([7, 2, 8, 1]), [0, 1, 3, 3, 4])
    made = {"dense": dense, "reduce": reduce, "embed": embed, "change": change, "cross": cross}
    calls = [Call(name, [given]) for name in ("dense", "reduce", "embed", "change")]
    return made, [*calls, Call("cross", [given, other])], table


@functions(
    MODELS,
    segments=[spec(None, 2), spec(None, dtype=tf.int32)],
    build=[spec(None), spec(None, dtype=tf.int64)],
    stack=[spec(None), spec(None)],
)
def ragged_parts(directory):
    def segments(x, ids):
        return (
            tf.math.segment_sum(x, ids),
            tf.math.segment_max(x, ids),
            tf.math.segment_mean(x, ids),
            tf.math.unsorted_segment_prod(x, ids, 5),
            tf.math.unsorted_segment_sqrt_n(x, ids, 4),
            tf.sparse.segment_sum(x, tf.constant([0, 2, 3]), tf.constant([0, 0, 2])),
        )

    def build(values, lengths):
        made = tf.RaggedTensor.from_row_lengths(values, lengths)
        softened = tf.ragged.map_flat_values(tf.sigmoid, made)
        return made.row_splits, made.value_rowids(), softened, tf.ragged.range(lengths)

    def stack(a, b):
        made = tf.ragged.stack([a, b])
        again = tf.map_fn(
            lambda row: row * 2.0, made, fn_output_signature=tf.RaggedTensorSpec([None])
        )
        return made, again, tf.RaggedTensor.from_tensor(tf.reshape(a, [2, -1]), padding=0.0)

    made = {"segments": segments, "build": build, "stack": stack}
    return made, [
        Call("segments", [numbers(5, 2), np.array([0, 0, 1, 3, 3], np.int32)]),
        Call("build", [numbers(5), np.array([2, 0, 3])]),
        Call("stack", [np.array([1, 2, 0, 0], F32), np.array([5], F32)]),
    ]


@functions(MODELS, words=STRINGS, codes=[spec(None, dtype=tf.int64)], buckets=STRINGS)
def tables_of_files(directory):
    path = Path(f"{directory}.tsv")
    path.write_text("rome\t10\t0.5\nlima\t20\t0.25\nbonn\t30\t2\n")

    def table(keys, key, values, value, default):
        initializer = tf.lookup.TextFileInitializer(
            str(path), keys, key, values, value, delimiter="\t"
        )
        return tf.lookup.StaticHashTable(initializer, default)

    whole, line = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    kept = [
        table(tf.string, 0, tf.int64, 1, -1),
        table(tf.string, 0, tf.int64, line, -1),
        table(tf.int64, 1, tf.string, 0, "?"),
        table(tf.int64, line, tf.string, whole, "??"),
    ]
    vocabulary = Path(f"{directory}.txt")
    vocabulary.write_text("rome\nlima\n")
    kept.append(
        tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(str(vocabulary), tf.string, whole, tf.int64, line), 5
        )
    )
    made = {
        "words": lambda x: (kept[0].lookup(x), kept[1].lookup(x), kept[0].size()),
        "codes": lambda x: (kept[2].lookup(x), kept[3].lookup(x)),
        "buckets": lambda x: kept[4].lookup(x),
    }
    return (
        made,
        [
            Call("words", [words("bonn", "oslo", "rome")]),
            Call("codes", [np.array([0, 2, 20, 5])]),
            Call("signatures.buckets", [], {"x": words("lima", "oslo", "cairo", "rome", "")}),
        ],
        *kept,
    )


SPARSE = tf.SparseTensorSpec([None, None], tf.float32)


@functions(MODELS, one=[SPARSE], two=[SPARSE, SPARSE], product=[SPARSE, spec(3, None)])
def sparse_tensors(directory):
    def one(x):
        return {
            "dense": tf.sparse.to_dense(x, 9.0),
            "sum": tf.sparse.reduce_sum(x, axis=1),
            "max": tf.sparse.reduce_max(x, axis=0, keepdims=True),
            "soft": tf.sparse.softmax(x),
            "turned": tf.sparse.transpose(x),
            "shaped": tf.sparse.reshape(x, [-1]),
            "part": tf.sparse.slice(x, [0, 1], [2, 2]),
            "filled": tf.sparse.fill_empty_rows(x, 7.0),
            "kept": tf.sparse.retain(x, x.values > 0.0),
        }

    def two(x, y):
        return (
            tf.sparse.add(x, y),
            tf.sparse.concat(1, [x, y]),
            tf.sparse.maximum(x, y),
            tf.sparse.minimum(x, y),
            tf.sets.union(tf.cast(x, tf.int64), tf.cast(y, tf.int64)),
            tf.sets.difference(tf.cast(x, tf.int64), tf.cast(y, tf.int64)),
            tf.sets.size(tf.sets.intersection(tf.cast(x, tf.int64), tf.cast(y, tf.int64))),
        )

    def product(x, y):
        return (
            tf.sparse.sparse_dense_matmul(x, y),
            x * 2.0,
            tf.sparse.bincount(tf.cast(x, tf.int32), minlength=3),
            tf.sparse.cross_hashed([tf.sparse.from_dense(tf.constant([[1, 0], [2, 3]]))], 100),
        )

    a = sparse([[0, 0], [0, 2], [2, 1]], np.array([1, -2, 3], F32), [3, 3])
    b = sparse([[0, 1], [0, 2], [1, 0]], np.array([4, 1, 6], F32), [3, 3])
    positive = sparse([[0, 1], [0, 2], [1, 0]], np.array([4, 1, 6], F32), [3, 3])
    made = {"one": one, "two": two, "product": product}
    return made, [
        Call("one", [a]),
        Call("two", [a, b]),
        Call("product", [positive, numbers(3, 2)]),
    ]
