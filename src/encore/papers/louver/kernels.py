"""The CPU kernels: encoding, certified flags, exact scores and the softmax over what is kept.

All compiled functions stand in this one file, since numba's cache notices changes of a function's own
file only.  The cache lies in ``__pycache__`` beside it (or, where that cannot be written, in the
folder ``NUMBA_CACHE_DIR`` or the user's cache folder; without any of them, every process compiles
anew).  Keys and values are (n, d) views of one head: float32, or the bits of bfloat16 as int16.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

UNIT = 2.0**-23  # twice the unit roundoff of float32
TINY = 2.0**-126  # smallest normal float32: covers what underflows
MASS_BINS = 256
AHEAD = 12  # rows that are fetched before they are read
MASS_SPAN = 30.0  # nats below the best upper bound that the histogram of masses resolves

# No "nnan" and "ninf": comparisons with NaN and infinity must hold, since a doubtful key is kept.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}


def _jit(function):
    options = {"fastmath": FASTMATH, "error_model": "numpy", "nogil": True}
    try:
        return njit(function, cache=True, **options)
    except RuntimeError:  # no folder for the cache can be written
        return njit(function, **options)


def wide(x):
    """The float32 value of an element: itself, or the number whose upper half are these 16 bits."""
    return np.float32(x)


@overload(wide, inline="always")
def _wide(x):
    if isinstance(x, types.Integer):
        return lambda x: np.int32(np.int64(x) << 16).view(np.float32)
    return lambda x: x


@intrinsic
def fetch(typingctx, rows, i):
    """Ask the processor to bring the start of row ``i`` of an (n, d) array into its caches."""

    def code(context, builder, signature, arguments):
        array = context.make_array(rows)(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        start = builder.ptrtoint(array.data, ir.IntType(64))
        place = builder.add(start, builder.mul(arguments[1], stride))
        size = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(ir.IntType(8)), size, size, size])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        pointer = builder.inttoptr(place, ir.PointerType(ir.IntType(8)))
        builder.call(function, [pointer, size(0), size(3), size(1)])
        return context.get_dummy_value()

    return types.void(rows, types.int64), code


@_jit
def encode(keys, mu, codes, scale, lean, rest):
    """Fill codes (n, >= d) int8 and the three coefficients (n,) of the bound of each key.

    With q^ = a c_q + r_q the score of k = mu + s (c + r) is at most
    q.mu + s a c_q.c + |r_q| lean + |q| rest, lean = s |c| and rest = s |r| + rounding (see the card).
    """
    n, d = keys.shape
    centre = 0.0
    for j in range(d):
        centre += np.float64(mu[j]) * np.float64(mu[j])
    centre = np.sqrt(centre)
    for i in range(n):
        top = 0.0
        for j in range(d):
            top = max(top, abs(np.float64(wide(keys[i, j])) - np.float64(mu[j])))
        s = np.float64(np.float32(max(top / 127.0, TINY)))
        inner = outer = norm = 0.0
        for j in range(d):
            k = np.float64(wide(keys[i, j]))
            x = (k - np.float64(mu[j])) / s
            c = min(127.0, max(-127.0, np.rint(x)))
            codes[i, j] = np.int8(c)
            inner += c * c
            outer += (x - c) * (x - c)
            norm += k * k
        slack = (d + 8) * UNIT * (np.sqrt(norm) + centre)
        scale[i] = np.float32(s)
        lean[i] = np.float32(s * np.sqrt(inner) * (1.0 + UNIT) + TINY)
        rest[i] = np.float32((s * np.sqrt(outer) + slack) * (1.0 + UNIT) + TINY)


@_jit
def quantise(q, mu, codes, terms):
    """Codes (H, G, >= d) int8 of all queries, and terms (H, G, 4): a, |r_q|, |q|, q.mu."""
    heads, g, d = q.shape
    for h in range(heads):
        for i in range(g):
            top = dot = norm = 0.0
            for j in range(d):
                x = np.float64(q[h, i, j])
                top = max(top, abs(x))
                norm += x * x
                dot += x * np.float64(mu[h, j])
            a = np.float64(np.float32(max(top / 127.0, TINY)))
            left = 0.0
            for j in range(d):
                c = min(127.0, max(-127.0, np.rint(np.float64(q[h, i, j]) / a)))
                codes[h, i, j] = np.int8(c)
                r = np.float64(q[h, i, j]) - a * c
                left += r * r
            terms[h, i, 0] = np.float32(a)
            terms[h, i, 1] = np.float32(np.sqrt(left) * (1.0 + UNIT) + TINY)
            terms[h, i, 2] = np.float32(np.sqrt(norm) * (1.0 + UNIT) + TINY)
            terms[h, i, 3] = np.float32(dot)


@_jit
def flag(dots, terms, coefficients, threshold, flags):
    """flags (H, G, >= n): 1 where the upper bound of a key reaches the threshold, otherwise 0.

    dots (H, G, n) int32, coefficients (3, H, >= n), threshold (H, G).
    """
    heads, g, n = dots.shape
    for h in range(heads):
        scale, lean, rest = coefficients[0, h], coefficients[1, h], coefficients[2, h]
        for i in range(g):
            a, r, norm, base = terms[h, i, 0], terms[h, i, 1], terms[h, i, 2], terms[h, i, 3]
            t = threshold[h, i] - base
            slack = np.float32(UNIT) * (abs(base) + abs(t)) + np.float32(TINY)
            for k in range(n):
                upper = scale[k] * (a * np.float32(dots[h, i, k])) + r * lean[k] + norm * rest[k]
                flags[h, i, k] = not (upper + slack < t)


@_jit
def collect(first, last, flags, n, keys, q, threshold, indices, scores, counts):
    """Exact scores of the flagged keys of some heads; those that may reach the threshold are kept.

    flags (H, G, m) uint8 with m >= n a multiple of 8 and zeros beyond n (2: keep in any case),
    keys (H, >= n, d); indices and scores (H, G, n) are filled from the left, counts (H, G, 2) with
    kept and flagged.
    """
    d = keys.shape[2]
    for h in range(first, last):
        for i in range(q.shape[1]):
            words = flags[h, i].view(np.uint64)
            seen = 0
            for w in range(words.size):
                if words[w] != 0:
                    for k in range(8 * w, 8 * w + 8):
                        if flags[h, i, k] != 0:
                            indices[h, i, seen] = k
                            seen += 1
            t = threshold[h, i]
            kept = 0
            for c in range(seen):
                fetch(keys[h], np.int64(indices[h, i, min(c + AHEAD, seen - 1)]))
                k = indices[h, i, c]
                dot = np.float32(0.0)
                size = np.float32(0.0)
                for j in range(d):
                    x = q[h, i, j] * wide(keys[h, k, j])
                    dot += x
                    size += abs(x)
                slack = np.float32((d + 8) * UNIT) * size + np.float32(2 * TINY)
                if flags[h, i, k] == 2 or not (dot + slack < t):
                    indices[h, i, kept] = k
                    scores[h, i, kept] = dot
                    kept += 1
            counts[h, i, 0] = kept
            counts[h, i, 1] = seen


@_jit
def mix(first, last, indices, scores, counts, values, scale, threshold, total, output, lost):
    """Softmax of the kept scores times ``scale`` and their values: output (H, G, d_v), some heads.

    lost (H, G) float64 becomes D/(Z + D): D bounds the mass of the ``total`` - kept other keys, all
    below the threshold.
    """
    d = values.shape[2]
    for h in range(first, last):
        for i in range(output.shape[1]):
            kept = counts[h, i, 0]
            top = np.float32(-np.inf)
            for k in range(kept):
                top = max(top, scores[h, i, k] * scale)
            mass = np.float32(0.0)
            for k in range(kept):
                scores[h, i, k] = np.exp(scores[h, i, k] * scale - top)
                mass += scores[h, i, k]
            for j in range(d):
                output[h, i, j] = 0.0
            for k in range(kept):
                weight = scores[h, i, k]
                row = indices[h, i, k]
                fetch(values[h], np.int64(indices[h, i, min(k + AHEAD, kept - 1)]))
                for j in range(d):
                    output[h, i, j] += weight * wide(values[h, row, j])
            for j in range(d if kept else 0):
                output[h, i, j] /= mass
            lost[h, i] = bound_of_lost(total - kept, threshold[h, i], scale, top, mass)


@_jit
def bound_of_lost(dropped, threshold, scale, top, mass):
    """D/(Z + D) with D = dropped exp(threshold scale - top), rounded up; 1 where nothing is known."""
    if dropped == 0:
        return 0.0
    most = dropped * np.exp(np.float64(threshold) * scale - np.float64(top)) * (1.0 + 1e-4)
    if not abs(np.float64(top)) < np.inf or not most < np.inf:
        return 1.0
    return most / (mass + most)


@_jit
def bounds(dots, terms, coefficients, lower, upper):
    """Certified lower and upper bounds (H, G, n) of every score, from the codes alone."""
    heads, g, n = dots.shape
    for h in range(heads):
        scale, lean, rest = coefficients[0, h], coefficients[1, h], coefficients[2, h]
        for i in range(g):
            a, r, norm, base = terms[h, i, 0], terms[h, i, 1], terms[h, i, 2], terms[h, i, 3]
            slack = np.float32(UNIT) * abs(base) + np.float32(TINY)
            for k in range(n):
                middle = base + scale[k] * (a * np.float32(dots[h, i, k]))
                width = r * lean[k] + norm * rest[k] + slack
                lower[h, i, k] = middle - width
                upper[h, i, k] = middle + width


@_jit
def bin_masses(lower, upper, scale, tops, below, above):
    """How many lower (upper) bounds (rows, n) lie in each bin of the span under ``tops`` (rows,).

    Scaled scores; bin 0 also holds everything below the span. below, above (rows, MASS_BINS) int64.
    """
    rows, n = lower.shape
    width = MASS_SPAN / MASS_BINS
    for i in range(rows):
        if not abs(tops[i]) < np.inf:  # bounds that overflow
            continue
        start = tops[i] - MASS_SPAN
        for k in range(n):
            low = (np.float64(lower[i, k]) * scale - start) / width
            high = (np.float64(upper[i, k]) * scale - start) / width
            below[i, int(min(max(low, 0.0), MASS_BINS - 1.0))] += 1
            above[i, int(min(max(high, 0.0), MASS_BINS - 1.0))] += 1


@_jit
def sample_quantile(q, sample, size, k, thresholds):
    """The k-th largest of the scores of the first ``size`` sampled keys (H, m, d), thresholds (H, G)."""
    heads, g, d = q.shape
    scores = np.empty(size, np.float32)
    for h in range(heads):
        for i in range(g):
            for n in range(size):
                dot = np.float32(0.0)
                for j in range(d):
                    dot += q[h, i, j] * sample[h, n, j]
                scores[n] = dot
            thresholds[h, i] = np.partition(scores, size - k)[size - k]


@_jit
def round_down(wide_thresholds, q, thresholds):
    """thresholds (H, G) float32, none above its float64 original (H G,).

    Returns:
        The first head whose threshold is NaN, H G if a query (H, G, d) is not finite, otherwise -1.
    """
    heads, g, d = q.shape
    for h in range(heads):
        for i in range(g):
            for j in range(d):
                if not abs(q[h, i, j]) < np.inf:
                    return wide_thresholds.size
    for h in range(heads):
        for i in range(g):
            t = wide_thresholds[h * g + i]
            if np.isnan(t):
                return h * g + i
            short = np.float32(t)
            if np.float64(short) > t:
                short = np.nextafter(short, np.float32(-np.inf))
            thresholds[h, i] = short
    return -1
