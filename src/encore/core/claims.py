"""Claims are records, judged by arithmetic on the table of metrics.

A claim has one or more checks; each check is a comparison with an interval and a region in which the
claim holds.  Verdicts: ``reproduced`` (the interval lies in the region), ``contradicted`` (it lies in
the region of failure), ``undecided`` (it straddles), ``not judged`` (needs another scale),
``blocked`` (data not reachable).  Every check is judged a second time on its control, numbers from
which the effect was removed; a check whose control also comes out reproduced proves nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from encore.core import config, intervals
from encore.core.intervals import Estimate

REPRODUCED, CONTRADICTED, UNDECIDED = "reproduced", "contradicted", "undecided"
NOT_JUDGED, BLOCKED = "not judged", "blocked"
VERDICTS = (REPRODUCED, UNDECIDED, CONTRADICTED, NOT_JUDGED, BLOCKED)
PERMUTATIONS = 20


class ClaimError(ValueError):
    """A claim asks for rows that the table does not have."""


class NoValueError(ClaimError):
    """The rows are there, but too few of them have a value (they say why in ``reason``)."""


@dataclass(frozen=True)
class Region:
    """Where an effect must lie for the claim to hold, and where it must lie to be contradicted.

    ``holds`` and ``fails`` are open or closed intervals of the real line, as (low, high, closed).
    With ``every`` the claim is about every row: the worst row (the effect) alone contradicts it.
    """

    holds: tuple[float, float, bool]
    fails: tuple[tuple[float, float, bool], ...]
    every: bool = False

    def verdict(self, estimate: Estimate) -> str:
        """Compare an interval with the two regions."""
        if math.isnan(estimate.low) or math.isnan(estimate.high):
            return UNDECIDED
        if _inside(estimate, self.holds):
            return REPRODUCED
        against = _point(estimate.effect) if self.every else estimate
        if any(_inside(against, region) for region in self.fails):
            return CONTRADICTED
        return UNDECIDED

    def contains(self, value: float) -> bool:
        """Whether a single number lies where the claim holds."""
        return _inside(_point(value), self.holds)


def one_sided(side: str, value: float, against: float | None = None) -> Region:
    """``effect side value`` holds; ``against`` (default: ``value``) is where contradiction begins."""
    against = value if against is None else against
    closed = side in ("<=", ">=")
    if side[0] == ">":
        return Region((value, math.inf, closed), ((-math.inf, against, not closed),))
    return Region((-math.inf, value, closed), ((against, math.inf, not closed),))


def within(low: float, high: float) -> Region:
    """The effect lies between two values."""
    return Region((low, high, True), ((-math.inf, low, False), (high, math.inf, False)))


def _point(value: float) -> Estimate:
    return Estimate(value, value, value, "")


def _inside(estimate: Estimate, region: tuple[float, float, bool]) -> bool:
    low, high, closed = region
    if closed:
        return low <= estimate.low and estimate.high <= high
    return low < estimate.low and estimate.high < high


# -- judging a claim ------------------------------------------------------------------------------

_CHECKS: TypeAdapter[Any] = TypeAdapter(config.AnyCheck)


def judge(
    claim: dict[str, Any], table: pd.DataFrame, context: dict[str, Any]
) -> list[dict[str, Any]]:
    """One record per data set that the claim is on.

    Args:
        claim: a ``config.Claim`` as a dict.
        table: rows of metrics.
        context: ``slug, scale, datasets, blocked, synthetic`` of this run.

    Raises:
        ClaimError: a check finds no rows, or its arms cannot be paired.
    """
    return [_record(claim, dataset, table, context) for dataset in claim["datasets"]]


def _record(
    claim: dict[str, Any], dataset: str, table: pd.DataFrame, context: dict[str, Any]
) -> dict[str, Any]:
    record = {
        name: claim[name] for name in ("id", "text", "kind", "paper", "refuted_if", "note")
    } | {
        "dataset": dataset,
        "scale": context["scale"],
        "command": f"snakemake --cores 2 --config scale={context['scale']} -- {context['slug']}_claims",
        "checks": [],
        "reason": "",
    }
    if dataset in context["blocked"]:
        return record | {"verdict": BLOCKED, "reason": context["blocked"][dataset]}
    if dataset not in (*context["datasets"], *context["synthetic"]):
        return record | {"verdict": NOT_JUDGED, "reason": f"{dataset} is not part of this scale"}
    rows = table[table["dataset"] == dataset]
    try:
        checks = [judge_check(_CHECKS.validate_python(check), rows) for check in claim["checks"]]
    except NoValueError as error:
        undecided = {"verdict": UNDECIDED, "reason": str(error)}
        judged_here = context["scale"] in claim["scales"]
        return record | (undecided if judged_here else _not_at(context["scale"], claim))
    except ClaimError as error:
        raise ClaimError(f"claim {claim['id']} on {dataset}: {error}") from None
    record["checks"] = checks
    if context["scale"] not in claim["scales"]:
        return record | _not_at(context["scale"], claim)
    decided = [check["verdict"] for check in checks if check["compare"] != "describe"]
    if not decided:
        return record | {"verdict": NOT_JUDGED, "reason": "described, not decided: see the numbers"}
    return record | {"verdict": combine(decided)}


def _not_at(scale: str, claim: dict[str, Any]) -> dict[str, Any]:
    reason = f"decided at {' and '.join(claim['scales'])} scale, this is {scale} scale"
    return {"verdict": NOT_JUDGED, "reason": reason}


def combine(verdicts: list[str]) -> str:
    """All checks must hold: the worst verdict decides."""
    return next(v for v in (CONTRADICTED, UNDECIDED, REPRODUCED) if v in verdicts)


def judge_check(check: Any, rows: pd.DataFrame) -> dict[str, Any]:
    """Judge one check and its control on the rows of one data set."""
    rows = select(rows, {"metric": check.metric, **check.where})
    if rows.empty:
        raise ClaimError(f"no rows with metric={check.metric!r} and {check.where}")
    empty = rows[~np.isfinite(rows["value"])]
    rows = rows[np.isfinite(rows["value"])].reset_index(drop=True)
    try:
        if rows.empty:
            raise ClaimError("no numbers")
        estimate, region = COMPARISONS[check.compare](check, rows)
    except ClaimError as error:
        if empty.empty:
            raise
        reasons = ", ".join(sorted(set(empty["reason"])))
        raise NoValueError(
            f"{check.name or check.metric}: {error}; {len(empty)} rows have no value ({reasons})"
        ) from None
    verdict = region.verdict(estimate) if region else NOT_JUDGED
    return {
        "name": check.name or check.metric,
        "metric": check.metric,
        "where": check.where,
        "compare": check.compare,
        "effect": estimate.effect,
        "interval": _finite([estimate.low, estimate.high]),
        "interval_method": estimate.method,
        "holds": _finite(region.holds[:2]) if region else None,
        "unit": str(rows["unit"].iloc[0]),
        "scale": "log" if check.compare == "ratio" else "linear",
        "reference": _reference(check),
        "n": len(rows),
        "seeds": sorted({int(seed) for seed in rows["seed"]}),
        "verdict": verdict,
        "control": control(check, rows) if region else None,
    }


def _reference(check: Any) -> float | None:
    if check.compare in ("difference", "equivalence", "non_inferiority", "order"):
        return 0.0
    return 1.0 if check.compare == "ratio" else None


def _finite(values: Any) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]


def select(rows: pd.DataFrame, where: dict[str, Any]) -> pd.DataFrame:
    """Rows whose columns have the given values (a list: any of them).

    Raises:
        ClaimError: an unknown column.
    """
    for column, value in where.items():
        if column not in rows.columns:
            raise ClaimError(f"no column {column!r}; there are {sorted(rows.columns)}")
        wanted = value if isinstance(value, list) else [value]
        rows = rows[rows[column].isin(wanted)]
    return rows


# -- comparisons: each gives an estimate and the region in which the claim holds --------------------


def _units(rows: pd.DataFrame, cluster: list[str]) -> np.ndarray:
    """Values of independent units: the rows, or the mean of each cluster."""
    if not cluster:
        return rows["value"].to_numpy(float)
    return rows.groupby(_columns(rows, cluster), dropna=False)["value"].mean().to_numpy(float)


def _columns(rows: pd.DataFrame, names: list[str]) -> list[str]:
    if unknown := set(names) - set(rows.columns):
        raise ClaimError(f"no columns {sorted(unknown)}; there are {sorted(rows.columns)}")
    return names


def _bound(check: config.Bound, rows: pd.DataFrame) -> tuple[Estimate, Region]:
    region = one_sided(check.side, check.value, check.against)
    if check.of == "rows":
        values = rows["value"].to_numpy(float)
        worst = values.min() if check.side[0] == ">" else values.max()
        return intervals.extremes(values, float(worst)), replace(region, every=True)
    units = _units(rows, check.cluster)
    statistic = {"mean": intervals.mean, "median": intervals.median, "share": intervals.share}
    return statistic[check.of](units), region


def _arms(check: config.Arms, rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    a, b = select(rows, check.a), select(rows, check.b)
    for name, arm, where in (("a", a, check.a), ("b", b, check.b)):
        if arm.empty:
            raise ClaimError(f"arm {name} has no rows with {where}")
    return a, b


def _paired(check: config.Arms, a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """One row per pair with columns ``a`` and ``b``; every pair must be complete."""
    keys = _columns(a, check.pair)
    both = pd.concat(
        [
            arm.groupby(keys, dropna=False)["value"].mean().rename(name)
            for name, arm in (("a", a), ("b", b))
        ],
        axis=1,
    )
    if both.isna().any(axis=None):
        lonely = both[both.isna().any(axis=1)].index[0]
        raise ClaimError(
            f"no partner for the pair {dict(zip(keys, np.atleast_1d(lonely), strict=False))}"
        )
    return both.reset_index()


def _contrast(
    check: Any, rows: pd.DataFrame, link: Callable[[Any], Any], statistic: str
) -> Estimate:
    """Estimate of link(a) - link(b), paired or not, by independent units."""
    a, b = _arms(check, rows)
    if not check.pair:
        arms = [link(_units(arm, check.cluster)) for arm in (a, b)]
        return intervals.mean_difference(*arms)
    pairs = _paired(check, a, b)
    pairs["value"] = link(pairs["a"]) - link(pairs["b"])
    units = _units(pairs, check.cluster)
    return intervals.median(units) if statistic == "median" else intervals.mean(units)


def _difference(check: config.Difference, rows: pd.DataFrame) -> tuple[Estimate, Region]:
    estimate = _contrast(check, rows, np.asarray, check.of)
    return estimate, one_sided(check.side, check.value, check.against)


def _ratio(check: config.Ratio, rows: pd.DataFrame) -> tuple[Estimate, Region]:
    region = one_sided(check.side, check.value, check.against)
    if (rows["value"] <= 0).any():
        raise ClaimError(f"a ratio needs positive values; found {rows['value'].min()}")
    if check.of == "of_means":
        return _ratio_of_means(check, rows), region
    log = _contrast(check, rows, np.log, check.of)
    effect, low, high = map(float, np.exp([log.effect, log.low, log.high]))
    return Estimate(effect, low, high, log.method), region


def _ratio_of_means(check: config.Ratio, rows: pd.DataFrame) -> Estimate:
    pairs = _paired(check, *_arms(check, rows))
    a, b = pairs["a"].to_numpy(), pairs["b"].to_numpy()
    groups = _groups(pairs, check.cluster)
    return intervals.over_clusters(
        lambda index: a[index].mean() / b[index].mean(), groups, float(a.mean() / b.mean())
    )


def _groups(rows: pd.DataFrame, cluster: list[str]) -> list[np.ndarray]:
    """Positions of the rows of each cluster (of each row, without clusters)."""
    if not cluster:
        return [np.array([i]) for i in range(len(rows))]
    return list(rows.groupby(_columns(rows, cluster), dropna=False).indices.values())


def _equivalence(check: config.Equivalence, rows: pd.DataFrame) -> tuple[Estimate, Region]:
    return _contrast(check, rows, np.asarray, "mean"), within(-check.margin, check.margin)


def _non_inferiority(check: config.NonInferiority, rows: pd.DataFrame) -> tuple[Estimate, Region]:
    estimate = _contrast(check, rows, np.asarray, "mean")
    if check.better == "higher":
        return estimate, one_sided(">", -check.margin)
    return estimate, one_sided("<", check.margin)


def _trend(check: config.Trend, rows: pd.DataFrame) -> tuple[Estimate, Region]:
    from scipy import stats

    x = rows[_columns(rows, [check.over])[0]].to_numpy(float)
    y = rows["value"].to_numpy(float)
    if check.statistic == "loglog":
        if (x <= 0).any() or (y <= 0).any():
            raise ClaimError("a log-log slope needs positive values")
        x, y = np.log(x), np.log(y)

    def statistic(index: np.ndarray) -> float:
        if np.ptp(x[index]) == 0:
            return math.nan
        if check.statistic == "spearman":
            ranks = stats.rankdata(np.stack([x[index], y[index]]), axis=1)
            return float(np.corrcoef(ranks)[0, 1])
        return float(np.polyfit(x[index], y[index], 1)[0])

    effect = statistic(np.arange(len(rows)))
    estimate = intervals.over_clusters(statistic, _groups(rows, check.cluster), effect)
    if check.within is not None:
        return estimate, within(*check.within)
    return estimate, one_sided(str(check.side), check.value, check.against)


def _order(check: config.Order, rows: pd.DataFrame) -> tuple[Estimate, Region]:
    """Mean of the target cell minus that of the best other cell, resampled over clusters."""
    cells = rows[_columns(rows, [check.cells])[0]].to_numpy()
    sign = 1.0 if check.better == "higher" else -1.0
    values = sign * rows["value"].to_numpy(float)
    names = pd.unique(cells)
    if check.target not in names:
        raise ClaimError(f"no cell {check.cells}={check.target!r}; there are {sorted(names)}")
    codes = np.searchsorted(np.sort(names), cells)
    target = int(np.searchsorted(np.sort(names), check.target))

    def statistic(index: np.ndarray) -> float:
        counts = np.bincount(codes[index], minlength=len(names))
        sums = np.bincount(codes[index], values[index], minlength=len(names))
        means = np.divide(sums, counts, out=np.full(len(names), np.nan), where=counts > 0)
        return float(means[target] - np.nanmax(np.delete(means, target)))

    effect = statistic(np.arange(len(rows)))
    estimate = intervals.over_clusters(statistic, _groups(rows, check.cluster), effect)
    return estimate, one_sided(">=", -check.within)


def _count(check: config.Count, rows: pd.DataFrame) -> tuple[Estimate, Region]:
    """How many groups hold; every group is asked for, so the count has no sampling error."""
    values = rows.groupby(_columns(rows, check.group), dropna=False)["value"].mean()
    wanted = one_sided(check.side, check.value)
    held = float(sum(wanted.contains(value) for value in values))
    if check.at_least > len(values):
        raise ClaimError(f"at_least is {check.at_least}, but there are only {len(values)} groups")
    estimate = Estimate(held, held, held, f"count of {len(values)}")
    return estimate, one_sided(">=", check.at_least, check.against)


def _describe(check: config.Describe, rows: pd.DataFrame) -> tuple[Estimate, None]:
    return intervals.mean(_units(rows, check.cluster)), None


COMPARISONS: dict[str, Callable[[Any, pd.DataFrame], tuple[Estimate, Region | None]]] = {
    "bound": _bound,
    "difference": _difference,
    "ratio": _ratio,
    "equivalence": _equivalence,
    "non_inferiority": _non_inferiority,
    "trend": _trend,
    "order": _order,
    "count": _count,
    "describe": _describe,
}


# -- controls: the same check on numbers from which the effect was removed ---------------------------


def control(check: Any, rows: pd.DataFrame) -> dict[str, Any]:
    """Judge the check's control: which one, and what it came out as."""
    name, altered = _controls(check, rows)
    verdicts = []
    for case, changed in altered:
        estimate, region = COMPARISONS[case.compare](case, changed)
        verdicts.append(region.verdict(estimate) if region else NOT_JUDGED)
    share = verdicts.count(REPRODUCED) / len(verdicts)
    verdict = REPRODUCED if share > 0.5 else max(set(verdicts) - {REPRODUCED}, key=verdicts.count)
    return {"name": name, "verdict": verdict, "reproduced_share": share}


def _controls(check: Any, rows: pd.DataFrame) -> tuple[str, list[tuple[Any, pd.DataFrame]]]:
    if check.compare in ("bound", "count"):
        return "deliberately wrong rows", [(check, _wrong_rows(check, rows))]
    if check.compare == "trend":
        return "labels permuted", [
            (check, _permuted(rows, check.over, i)) for i in range(PERMUTATIONS)
        ]
    if check.compare == "order":
        return "best and worst cell exchanged", [(check, _worst_target(check, rows))]
    if _allows_no_effect(check):
        return "arm a made worse than the margin", [(check, _shifted(check, rows))]
    return "arms exchanged", [(check.model_copy(update={"a": check.b, "b": check.a}), rows)]


def _allows_no_effect(check: Any) -> bool:
    if check.compare in ("equivalence", "non_inferiority"):
        return True
    return one_sided(check.side, check.value).contains(_reference(check) or 0.0)


def _wrong_rows(check: Any, rows: pd.DataFrame) -> pd.DataFrame:
    """Every row moved to the wrong side of the value (zeros and ones exchanged for a share)."""
    values = rows["value"].to_numpy(float)
    if check.compare == "bound" and check.of == "share":
        wrong = 1.0 - values
    else:
        against = getattr(check, "against", None) if check.compare == "bound" else None
        sign = -1.0 if check.side[0] == ">" else 1.0
        edge = check.value if against is None else sign * max(sign * against, sign * check.value)
        wrong = edge + sign * (np.abs(values - check.value) + 0.1 * max(1.0, abs(check.value)))
    return rows.assign(value=wrong)


def _permuted(rows: pd.DataFrame, column: str, seed: int) -> pd.DataFrame:
    shuffled = np.random.default_rng(seed).permutation(rows[column].to_numpy())
    return rows.assign(**{column: shuffled})


def _worst_target(check: config.Order, rows: pd.DataFrame) -> pd.DataFrame:
    means = rows.groupby(check.cells)["value"].mean()
    worst = means.idxmin() if check.better == "higher" else means.idxmax()
    if worst == check.target:  # it already is the worst: the check must fail as it stands
        return rows
    exchanged = {check.target: worst, worst: check.target}
    return rows.assign(
        **{check.cells: rows[check.cells].map(lambda cell: exchanged.get(cell, cell))}
    )


def _shifted(check: Any, rows: pd.DataFrame) -> pd.DataFrame:
    """Arm a moved against the claim, well past the margin."""
    a, b = _arms(check, rows)
    changed = rows.copy()
    if check.compare == "ratio":
        worse = max(check.value, 1 / check.value, check.against or 0.0) ** 2
        factor = worse if check.side[0] == "<" else 1 / worse
        factor *= b["value"].mean() / a["value"].mean()
        changed.loc[a.index, "value"] *= factor * (1.5 if factor > 1 else 1 / 1.5)
        return changed
    margin = (
        check.margin
        if hasattr(check, "margin")
        else max(abs(check.value), abs(check.against or 0.0))
    )
    spread = float(np.ptp(rows["value"])) + margin + 1e-12
    higher_is_worse = (
        getattr(check, "better", "") == "lower" or getattr(check, "side", ">")[0] == "<"
    )
    changed.loc[a.index, "value"] += (2 * margin + 2 * spread) * (1 if higher_is_worse else -1)
    return changed


def judge_all(
    claims: list[dict[str, Any]], table: pd.DataFrame, context: dict[str, Any]
) -> list[Any]:
    """Records of all claims, in their order."""
    return [record for claim in claims for record in judge(claim, table, context)]


def headline(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The record that stands for a claim: the first that is decided, otherwise that of its main data set."""
    decided = (REPRODUCED, CONTRADICTED, UNDECIDED)
    return next((record for record in records if record["verdict"] in decided), records[0])
