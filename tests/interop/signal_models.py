"""Models of signals and mathematics: audio, transforms, CTC, matrices, special functions, sets."""

from typing import Any

import numpy as np
import tensorflow as tf
from tests.interop.calls import Call, sparse
from tests.interop.keras_models import exported
from tests.interop.module_models import numbers, spec
from tests.interop.text_models import functions, words

F32 = np.float32
MODELS: dict[str, Any] = {}
keras: Any = tf.keras
L: Any = keras.layers
WAVE = [spec(None)]


def wave(samples=600):
    t = np.arange(samples) / 8000
    return (0.4 * np.sin(2 * np.pi * 440 * t) + 0.2 * np.cos(2 * np.pi * 1250 * t)).astype(F32)


@functions(MODELS, features=[spec(dtype=tf.string)], coded=[spec(None, 2)])
def speech_features(directory):
    """Bytes of a file to coefficients: decoding, frames, mel bands, cepstrum."""
    w = tf.Variable(numbers(13, 4))

    def features(x):
        audio, rate = tf.audio.decode_wav(x, desired_channels=1)
        signal = tf.squeeze(audio, -1)
        spectrum = tf.abs(tf.signal.stft(signal, 128, 64, pad_end=True))
        weights = tf.signal.linear_to_mel_weight_matrix(20, 65, 8000, 80.0, 3800.0)
        bands = tf.math.log(spectrum @ weights + 0.1)
        cepstrum = tf.signal.mfccs_from_log_mel_spectrograms(bands)[:, :13]
        return {"rate": rate, "bands": bands, "cepstrum": cepstrum, "y": cepstrum @ w}

    def coded(x):
        data = tf.audio.encode_wav(x, 8000)
        spectrogram = tf.raw_ops.AudioSpectrogram(
            input=x, window_size=128, stride=64, magnitude_squared=True
        )
        mfcc = tf.raw_ops.Mfcc(
            spectrogram=spectrogram, sample_rate=16000, upper_frequency_limit=6000
        )
        return data, tf.audio.decode_wav(data, 2, 50).audio, spectrogram, mfcc

    given = words(tf.audio.encode_wav(wave()[:, None], 8000).numpy())[0]
    calls = [Call("features", [given]), Call("coded", [np.stack([wave(), wave()[::-1]], 1)])]
    return {"features": features, "coded": coded}, calls, w


@functions(MODELS, frames=WAVE, there=WAVE, cosines=[spec(None, 8)], cells=[spec(None, 4, 6)])
def transforms(directory):
    def frames(x):
        window = tf.signal.hamming_window
        return (
            tf.signal.frame(x, 50, 20, pad_end=True, pad_value=1.0),
            tf.signal.overlap_and_add(tf.reshape(x[:60], [6, 10]), 5),
            window(9),
            tf.signal.kaiser_window(8, 3.0),
            tf.signal.kaiser_bessel_derived_window(8),
            tf.signal.vorbis_window(8),
        )

    def there(x):
        """There and back again."""
        spectrum = tf.signal.stft(x, 64, 16, 64)
        inverse = tf.signal.inverse_stft_window_fn(16)
        modified = tf.signal.mdct(x[:96], 32, norm="ortho")
        return (
            spectrum,
            tf.signal.inverse_stft(spectrum, 64, 16, 64, inverse),
            modified,
            tf.signal.inverse_mdct(modified, norm="ortho"),
            tf.signal.irfft(tf.signal.rfft(x, [700]), [700]),
        )

    def cosines(x):
        kinds = [tf.signal.dct(x, kind, norm="ortho" if kind > 1 else None) for kind in (1, 2, 3)]
        return *kinds, tf.signal.dct(x, 4), tf.signal.idct(kinds[1], 2, norm="ortho")

    def cells(x):
        z = tf.complex(x, -x)
        return (
            tf.signal.fft2d(z),
            tf.signal.ifft(tf.signal.fftshift(z, [1, 2])),
            tf.signal.rfft2d(x),
            tf.signal.irfft2d(tf.signal.rfft2d(x), [4, 5]),
            tf.signal.rfft3d(x),
            tf.math.abs(z),
            tf.math.angle(z),
        )

    made = {"frames": frames, "there": there, "cosines": cosines, "cells": cells}
    return made, [
        Call("frames", [wave()]),
        Call("there", [wave()]),
        Call("cosines", [numbers(3, 8)]),
        Call("cells", [numbers(2, 4, 6)]),
    ]


LOGITS = [spec(None, None, 5), spec(None, dtype=tf.int32)]


@functions(MODELS, decode=LOGITS, loss=[*LOGITS, spec(None, None, dtype=tf.int32)])
def ctc(directory):
    def decode(logits, lengths):
        greedy, score = tf.nn.ctc_greedy_decoder(logits, lengths, merge_repeated=True)
        found, scores = tf.nn.ctc_beam_search_decoder(logits, lengths, 8, 2)
        return greedy[0], score, found, scores

    def loss(logits, lengths, labels):
        sizes = tf.reduce_sum(tf.cast(labels > 0, tf.int32), 1)
        of_sparse = tf.compat.v1.nn.ctc_loss_v2(
            tf.sparse.from_dense(labels), logits, None, lengths, blank_index=-1
        )
        dense = tf.nn.ctc_loss(labels, logits, sizes, lengths, blank_index=0)
        return (
            of_sparse,
            dense,
            tf.edit_distance(
                tf.sparse.from_dense(tf.cast(labels, tf.int64)),
                tf.sparse.from_dense(tf.cast(labels[:, ::-1], tf.int64)),
            ),
        )

    logits, lengths = numbers(7, 2, 5) * 3, np.array([7, 5], np.int32)
    return {"decode": decode, "loss": loss}, [
        Call("decode", [logits, lengths]),
        Call("loss", [logits, lengths, np.array([[1, 2, 3], [2, 0, 0]], np.int32)]),
    ]


def keras_audio(directory):
    keras.utils.set_random_seed(7)
    x = L.Input((400,), name="audio")
    mel = L.MelSpectrogram(
        fft_length=128, sequence_stride=64, num_mel_bins=12, sampling_rate=8000, max_freq=4000
    )(x)
    short = L.STFTSpectrogram("log", frame_length=64, frame_step=32, fft_length=64)(
        L.Reshape((400, 1))(x)
    )
    y = L.GlobalAveragePooling1D()(L.Conv1D(4, 3, activation="relu")(short))
    net = keras.Model(x, [mel, L.Dense(2)(y)])
    return exported(net, str(directory), np.stack([wave(400), wave(400)[::-1]]))


MODELS["keras_audio"] = keras_audio

SQUARE = [spec(None, 4, 4, dtype=tf.float64)]


@functions(MODELS, functions=SQUARE, factors=SQUARE, solve=[*SQUARE, *SQUARE], bands=SQUARE)
def matrices(directory):
    linalg = tf.linalg

    def functions(x):
        product = x @ linalg.matrix_transpose(x) + linalg.eye(4, dtype=tf.float64)
        z = tf.cast(product, tf.complex128)
        return (
            linalg.expm(x),
            linalg.logm(z),
            linalg.sqrtm(product),
            linalg.inv(product),
            linalg.det(x),
            linalg.slogdet(product),
            linalg.logdet(product),
            linalg.matrix_rank(x),
            linalg.pinv(x[:, :3]),
            linalg.norm(x, "euclidean", [1, 2]),
            linalg.trace(x),
            linalg.cross(x[..., :3], x[..., 1:]),
        )

    def factors(x):
        product = x @ linalg.matrix_transpose(x) + linalg.eye(4, dtype=tf.float64)
        lower, order = linalg.lu(x)
        q, r = linalg.qr(x[:, :, :3])
        s, u, v = linalg.svd(x)
        values, vectors = linalg.eigh(product)
        return {
            "lu": [lower, order, linalg.lu_reconstruct(lower, order)],
            "qr": [tf.abs(q), q @ r],
            "svd": [s, linalg.matmul(u * s[:, None], v, adjoint_b=True)],
            "eigh": [values, tf.abs(vectors)],
            "eig": tf.sort(tf.math.real(linalg.eigvals(product))),
            "cholesky": linalg.cholesky(product),
        }

    def solve(x, y):
        product = x @ linalg.matrix_transpose(x) + linalg.eye(4, dtype=tf.float64)
        factor = linalg.cholesky(product)
        lower, order = linalg.lu(x)
        return (
            linalg.solve(product, y),
            linalg.triangular_solve(factor, y, adjoint=True),
            linalg.cholesky_solve(factor, y),
            linalg.lu_solve(lower, order, y),
            linalg.lstsq(x[:, :, :2], y, 0.1),
            linalg.lstsq(x[:, :, :2], y, fast=False),
            linalg.tridiagonal_solve(product[:, :3], y, "compact", partial_pivoting=False),
            linalg.tridiagonal_matmul(product, y, "matrix"),
        )

    def bands(x):
        band = linalg.diag_part(x, k=(-1, 2), align="LEFT_RIGHT")
        bound = linalg.diag(band, k=(-1, 2), align="LEFT_RIGHT", padding_value=9.0)
        lower = linalg.band_part(x, -1, 0) + 3.0 * linalg.eye(4, dtype=tf.float64)
        solved = linalg.banded_triangular_solve(
            linalg.diag_part(lower, k=(-1, 0), align="LEFT_RIGHT"), x, lower=True
        )
        operator = linalg.LinearOperatorKronecker(
            [linalg.LinearOperatorFullMatrix(x), linalg.LinearOperatorIdentity(2, dtype=x.dtype)]
        )
        circulant = linalg.LinearOperatorCirculant(tf.cast(x[:, 0], tf.complex128))
        return (
            bound,
            solved,
            linalg.set_diag(x, x[:, 0]),
            operator.to_dense(),
            operator.matmul(tf.ones([8, 1], tf.float64)),
            tf.math.real(circulant.to_dense()),
            linalg.LinearOperatorHouseholder(x[:, 0]).solve(x),
        )

    x, y = numbers(2, 4, 4, dtype=np.float64), numbers(2, 4, 4, seed=3, dtype=np.float64)
    made = {"functions": functions, "factors": factors, "solve": solve, "bands": bands}
    calls = [Call(name, [x]) for name in ("functions", "factors", "bands")]
    return made, [*calls, Call("solve", [x, y])]


@functions(MODELS, special=[spec(None)], bessel=[spec(None)], two=[spec(None), spec(None)])
def special_functions(directory):
    def special(x):
        names = (
            "lgamma digamma erf erfc erfinv ndtri expm1 log1p sinc softplus softsign sinh asinh "
            "log_sigmoid atanh rint reciprocal_no_nan cumulative_logsumexp"
        )
        known = [getattr(tf.math, name)(x) for name in names.split() if hasattr(tf.math, name)]
        others = [tf.math.special.dawsn, tf.math.special.expint, tf.math.special.spence]
        others += [tf.math.special.fresnel_cos, tf.math.special.fresnel_sin, tf.nn.gelu]
        return known, [function(x) for function in others]

    def bessel(x):
        names = ["i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1"]
        return {name: getattr(tf.math.special, f"bessel_{name}")(x) for name in names}

    def two(x, y):
        return {
            "betainc": tf.math.betainc(x * 3, y * 3, x),
            "igamma": [tf.math.igamma(x * 5, y * 5), tf.math.igammac(x * 5, y * 5)],
            "zeta": tf.math.zeta(x + 2, y),
            "polygamma": tf.math.polygamma(tf.floor(x * 4), y),
            "lbeta": tf.math.lbeta(tf.stack([x, y], 1)),
            "xlogy": [tf.math.xlogy(x, y), tf.math.xlog1py(x, y), tf.math.xdivy(x, y)],
            "other": [tf.math.nextafter(x, y), tf.math.floormod(x, y), tf.atan2(x, y)],
            "top": tf.math.approx_max_k(tf.ensure_shape(x, [7]), 2),
            "percentile": tf.math.reduce_euclidean_norm(x),
        }

    x, y = [np.random.RandomState(s).uniform(0.05, 0.95, 7).astype(F32) for s in (1, 2)]
    return {"special": special, "bessel": bessel, "two": two}, [
        Call("special", [x]),
        Call("bessel", [x * 6]),
        Call("two", [x, y]),
    ]


@functions(MODELS, count=[spec(None, dtype=tf.int32)], order=[spec(None)], sums=[spec(None, None)])
def counts_and_orders(directory):
    def count(x):
        kinds = tf.math.bincount(x, weights=tf.cast(x, tf.float32) * 0.5, minlength=4)
        confusion = tf.math.confusion_matrix(x, x[::-1], 9)
        grouped = tf.math.bincount(tf.reshape(x, [2, -1]), axis=-1, binary_output=True)
        histogram = tf.histogram_fixed_width(tf.cast(x, tf.float32), [0.0, 8.0], 4)
        sparse_counts = tf.sparse.bincount(tf.reshape(x, [2, -1]))
        return kinds, confusion, grouped, histogram, sparse_counts

    def order(x):
        top, places = tf.math.top_k(x, 3)
        isotonic, segments = tf.nn.isotonic_regression(x, axis=-1)
        return {
            "top": [top, places],
            "sorted": [tf.sort(x), tf.argsort(x, stable=True), tf.searchsorted(tf.sort(x), x)],
            "isotonic": [isotonic, segments],
            "bucket": tf.raw_ops.Bucketize(input=x, boundaries=[-0.5, 0.0, 0.5]),
            "moments": tf.nn.moments(x, 0),
            "in_top": tf.math.in_top_k([0, 1], tf.reshape(x[:6], [2, 3]), 1),
            "nth": tf.raw_ops.NthElement(input=x, n=2),
            "quantised": tf.clip_by_norm(x, 1.0),
        }

    def sums(x):
        return {
            "cumsum": tf.cumsum(x, 1, exclusive=True, reverse=True),
            "cumprod": tf.math.cumprod(x, 0),
            "logsumexp": tf.reduce_logsumexp(x, 1),
            "deviation": tf.math.reduce_std(x, 0),
            "einsum": tf.einsum("ij,kj->ik", x, x),
            "tensordot": tf.tensordot(x, x, [[0], [0]]),
            "l2": tf.math.l2_normalize(x, 1),
            "unique": tf.raw_ops.UniqueV2(x=tf.round(x * 2), axis=[0]),
            "where": tf.where(x > 0.0),
        }

    made = {"count": count, "order": order, "sums": sums}
    return made, [
        Call("count", [np.array([1, 3, 3, 0, 7, 1], np.int32)]),
        Call("order", [numbers(9)]),
        Call("sums", [numbers(3, 4)]),
    ]


SPARSE = tf.SparseTensorSpec([4, 4], tf.float32)


@functions(MODELS, products=[SPARSE, spec(4, 3)], sets=[spec(None, None, dtype=tf.int64)] * 2)
def sparse_products(directory):
    def products(x, y):
        csr = tf.raw_ops.SparseTensorToCSRSparseMatrix(
            indices=x.indices, values=x.values, dense_shape=x.dense_shape
        )
        dense = tf.raw_ops.SparseMatrixMatMul(a=csr, b=y, transpose_a=True)
        square = tf.raw_ops.SparseMatrixSparseMatMul(a=csr, b=csr, type=tf.float32)
        back = tf.raw_ops.CSRSparseMatrixToDense(sparse_input=square, type=tf.float32)
        embedded = tf.nn.embedding_lookup_sparse(
            y, tf.cast(x, tf.int64), None, combiner="mean", allow_fast_lookup=False
        )
        return (
            tf.sparse.sparse_dense_matmul(x, y),
            tf.sparse.sparse_dense_matmul(x, y, adjoint_a=True),
            dense,
            back,
            embedded,
            tf.sparse.map_values(tf.square, x),
            tf.sparse.eye(3, 4),
            tf.sparse.split(x, 2, axis=1),
            tf.sparse.expand_dims(x, 0),
            tf.sparse.to_indicator(tf.cast(x, tf.int64), 5),
        )

    def sets(x, y):
        return tf.sets.union(x, y), tf.sets.difference(x, y), tf.sets.intersection(x, y)

    given = sparse([[0, 1], [0, 3], [1, 0], [2, 2], [3, 1]], np.array([1, 2, 3, 0, 1], F32), [4, 4])
    two = np.array([[1, 2, 2], [5, 6, 7]]), np.array([[2, 3, 4], [7, 5, 5]])
    return {"products": products, "sets": sets}, [
        Call("products", [given, numbers(4, 3)]),
        Call("sets", [*two]),
    ]
