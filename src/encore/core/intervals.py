"""Interval estimates of a statistic, resampled over clusters: scipy's where it has the method.

Every function takes samples as 1-D float64 arrays of independent units (rows, pairs or cluster means)
and returns ``Estimate``.  95 % two-sided throughout.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
RESAMPLES = 4000
BOOTSTRAP_FROM = (
    10  # below this many units the percentile intervals are too narrow: Student's t instead
)


@dataclass(frozen=True)
class Estimate:
    """A statistic with its interval; ``low`` and ``high`` are NaN where the data give none."""

    effect: float
    low: float
    high: float
    method: str


def mean(sample: np.ndarray) -> Estimate:
    """Mean of independent units: BCa bootstrap from 10 units on, Student's t below."""
    effect = float(sample.mean())
    if len(sample) < 2:
        return Estimate(effect, np.nan, np.nan, "none: one unit")
    if np.ptp(sample) == 0:
        return Estimate(effect, effect, effect, "all units equal")
    if len(sample) < BOOTSTRAP_FROM:
        return _student(sample)
    return _bootstrap((sample,), np.mean, effect)


def _student(sample: np.ndarray) -> Estimate:
    from scipy import stats

    interval = stats.ttest_1samp(sample, 0.0).confidence_interval(LEVEL)
    method = f"Student t, {len(sample)} units"
    return Estimate(float(sample.mean()), float(interval.low), float(interval.high), method)


def mean_difference(a: np.ndarray, b: np.ndarray) -> Estimate:
    """Difference of the means of two independent samples: bootstrap, or Welch's t for small ones."""
    from scipy import stats

    effect = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return Estimate(effect, np.nan, np.nan, "none: one unit")
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return Estimate(effect, effect, effect, "all units equal")
    if min(len(a), len(b)) < BOOTSTRAP_FROM:
        interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval(LEVEL)
        return Estimate(effect, float(interval.low), float(interval.high), "Welch t")
    return _bootstrap((a, b), lambda x, y, axis: x.mean(axis) - y.mean(axis), effect)


def median(sample: np.ndarray) -> Estimate:
    """Median with the exact interval from order statistics, or the range where there are too few units."""
    from scipy import stats

    effect = float(np.median(sample))
    if len(sample) < 2:
        return Estimate(effect, np.nan, np.nan, "none: one unit")
    interval = stats.quantile_test(sample, q=effect, p=0.5).confidence_interval(LEVEL)
    if np.isfinite([interval.low, interval.high]).all():
        return Estimate(effect, float(interval.low), float(interval.high), "order statistics")
    covers = 100 * (1 - 2.0 ** (1 - len(sample)))
    method = f"range of {len(sample)} units, {covers:.0f} %"
    return Estimate(effect, float(sample.min()), float(sample.max()), method)


def share(sample: np.ndarray) -> Estimate:
    """Share of ones among zeros and ones with the exact (Clopper-Pearson) interval.

    Raises:
        ValueError: an entry is neither 0 nor 1.
    """
    from scipy import stats

    if not np.isin(sample, (0.0, 1.0)).all():
        raise ValueError(
            f"a share needs rows of 0 and 1; found {sample[~np.isin(sample, (0, 1))][0]}"
        )
    interval = stats.binomtest(int(sample.sum()), len(sample)).proportion_ci(LEVEL, "exact")
    return Estimate(
        float(sample.mean()), float(interval.low), float(interval.high), "exact binomial"
    )


def extremes(sample: np.ndarray, worst: float) -> Estimate:
    """The worst row, and the range of all rows (no sampling error: every row is asked for)."""
    return Estimate(worst, float(sample.min()), float(sample.max()), "range of rows")


def over_clusters(
    statistic: Callable[[np.ndarray], float], groups: list[np.ndarray], effect: float
) -> Estimate:
    """Percentile bootstrap of a statistic of row indices, whole groups of rows resampled together.

    Args:
        statistic: function of an index array into the rows.
        groups: for each cluster the indices of its rows.
        effect: the statistic of all rows.
    """
    if len(groups) < 3:
        return Estimate(effect, np.nan, np.nan, f"none: {len(groups)} clusters")
    rng = np.random.default_rng(0)
    draws = rng.integers(len(groups), size=(RESAMPLES // 4, len(groups)))
    values = np.array([statistic(np.concatenate([groups[i] for i in draw])) for draw in draws])
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(effect, float(low), float(high), f"bootstrap, {len(groups)} clusters")


def _bootstrap(samples: tuple[np.ndarray, ...], statistic: Callable, effect: float) -> Estimate:
    from scipy import stats

    result = stats.bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="BCa",
        rng=np.random.default_rng(0),
    ).confidence_interval
    units = "+".join(str(len(sample)) for sample in samples)
    return Estimate(effect, float(result.low), float(result.high), f"BCa bootstrap, {units} units")
