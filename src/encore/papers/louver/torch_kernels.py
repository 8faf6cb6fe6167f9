"""The kernels without numba: the same functions in plain torch, slower than dense attention.

Signatures and meaning are those of ``encore.papers.louver.kernels``; arrays are filled in place.
"""

import numpy as np
import torch

# As in kernels.py, which cannot import them: numba would not notice that another file changed.
UNIT = 2.0**-23  # twice the unit roundoff of float32
TINY = 2.0**-126  # smallest normal float32: covers what underflows
MASS_BINS = 256
MASS_SPAN = 30.0  # nats below the best upper bound that the histogram of masses resolves


def _wide(raw: np.ndarray) -> torch.Tensor:
    """float32 tensor of an array of float32, or of the bits of bfloat16."""
    tensor = torch.from_numpy(raw)
    return tensor.view(torch.bfloat16).float() if raw.dtype == np.int16 else tensor


def encode(keys, mu, codes, scale, lean, rest):
    """Codes and coefficients of keys (n, d); see ``kernels.encode``."""
    wide, centre = _wide(keys).double(), torch.from_numpy(mu).double()
    away = wide - centre
    s = (away.abs().amax(1) / 127).clamp(min=TINY).float().double()
    x = away / s[:, None]
    c = x.round().clamp(-127, 127)
    slack = (keys.shape[1] + 8) * UNIT * (wide.norm(dim=1) + centre.norm())
    codes[:, : c.shape[1]] = c.to(torch.int8).numpy()
    scale[:] = s.float().numpy()
    lean[:] = (s * c.norm(dim=1) * (1 + UNIT) + TINY).float().numpy()
    rest[:] = ((s * (x - c).norm(dim=1) + slack) * (1 + UNIT) + TINY).float().numpy()


def quantise(q, mu, codes, terms):
    """Codes and terms of queries (H, G, d); see ``kernels.quantise``."""
    wide = torch.from_numpy(q).double()
    a = (wide.abs().amax(2) / 127).clamp(min=TINY).float().double()
    c = (wide / a[..., None]).round().clamp(-127, 127)
    left = (wide - a[..., None] * c).norm(dim=2) * (1 + UNIT) + TINY
    norm = wide.norm(dim=2) * (1 + UNIT) + TINY
    base = (wide * torch.from_numpy(mu).double()[:, None]).sum(2)
    codes[..., : q.shape[2]] = c.to(torch.int8).numpy()
    terms[:] = torch.stack([a, left, norm, base], 2).float().numpy()


def flag(dots, terms, coefficients, threshold, flags):
    """Flags of the keys whose upper bound reaches the threshold; see ``kernels.flag``."""
    lower, upper = np.empty(dots.shape, np.float32), np.empty(dots.shape, np.float32)
    bounds(dots, terms, coefficients, lower, upper)
    flags[..., : dots.shape[2]] = ~(upper < threshold[..., None])


def bounds(dots, terms, coefficients, lower, upper):
    """Certified bounds of every score; see ``kernels.bounds``."""
    a, r, norm, base = (torch.from_numpy(terms[..., i : i + 1]) for i in range(4))
    some = torch.from_numpy(coefficients[:, :, None, : dots.shape[2]])
    scale, lean, rest = some
    middle = base + scale * (a * torch.from_numpy(dots).float())
    width = r * lean + norm * rest + (UNIT * base.abs() + TINY)
    lower[:] = (middle - width).numpy()
    upper[:] = (middle + width).numpy()


def collect(first, last, flags, n, keys, q, threshold, indices, scores, counts):
    """Exact scores of flagged keys, and which are kept; see ``kernels.collect``."""
    for h, i in np.ndindex(last - first, q.shape[1]):
        h += first
        rows = flags[h, i, :n].nonzero()[0]
        parts = _wide(keys[h, rows]) * torch.from_numpy(q[h, i])
        dot = parts.sum(1)
        slack = (keys.shape[2] + 8) * UNIT * parts.abs().sum(1) + 2 * TINY
        keep = ~(dot + slack < float(threshold[h, i])).numpy() | (flags[h, i, rows] == 2)
        kept = int(keep.sum())
        indices[h, i, :kept] = rows[keep]
        scores[h, i, :kept] = dot.numpy()[keep]
        counts[h, i] = kept, len(rows)


def mix(first, last, indices, scores, counts, values, scale, threshold, total, output, lost):
    """Softmax over the kept keys and their values; see ``kernels.mix``."""
    output[first:last] = 0
    for h, i in np.ndindex(last - first, output.shape[1]):
        h += first
        kept = counts[h, i, 0]
        scaled = torch.from_numpy(scores[h, i, :kept]) * float(scale)
        top = float(scaled.max()) if kept else -np.inf
        weights = (scaled - top).exp()
        mass = float(weights.sum())
        if kept:
            output[h, i] = (weights @ _wide(values[h, indices[h, i, :kept]]) / mass).numpy()
        lost[h, i] = bound_of_lost(total - kept, threshold[h, i], float(scale), top, mass)


def bound_of_lost(dropped, threshold, scale, top, mass):
    """The bound of what is lost; see ``kernels.bound_of_lost``."""
    if dropped == 0:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        most = dropped * np.exp(np.float64(threshold) * scale - top) * (1 + 1e-4)
    return most / (mass + most) if np.isfinite(top) and np.isfinite(most) else 1.0


def bin_masses(lower, upper, scale, tops, below, above):
    """Histograms of the scaled bounds; see ``kernels.bin_masses``."""
    width = MASS_SPAN / MASS_BINS
    for i, top in enumerate(tops):
        for source, counts in ((lower, below), (upper, above)) if np.isfinite(top) else ():
            place = (source[i].astype(np.float64) * scale - (top - MASS_SPAN)) / width
            place = np.clip(place, 0, MASS_BINS - 1).astype(np.int64)
            counts[i] += np.bincount(place, minlength=MASS_BINS)


def sample_quantile(q, sample, size, k, thresholds):
    """The k-th largest score of the sample; see ``kernels.sample_quantile``."""
    scores = torch.from_numpy(q) @ torch.from_numpy(sample[:, :size]).transpose(1, 2)
    thresholds[:] = scores.topk(k, dim=2).values[..., -1].numpy()


def round_down(wide_thresholds, q, thresholds):
    """float32 thresholds that are not above the originals; see ``kernels.round_down``."""
    if not np.isfinite(q).all():
        return wide_thresholds.size
    if np.isnan(wide_thresholds).any():
        return int(np.isnan(wide_thresholds).argmax())
    with np.errstate(over="ignore", under="ignore"):
        short = wide_thresholds.astype(np.float32)
    down = np.nextafter(short, np.float32(-np.inf))
    thresholds[:] = np.where(short > wide_thresholds, down, short).reshape(thresholds.shape)
    return -1
