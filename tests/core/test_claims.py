"""The engine of claims: each comparison reproduces, contradicts and hesitates, and its control fails."""

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter

from encore.core import claims, config, intervals
from encore.core.claims import (
    BLOCKED,
    CONTRADICTED,
    NOT_JUDGED,
    REPRODUCED,
    UNDECIDED,
    judge,
    judge_check,
)

CHECK = TypeAdapter(config.AnyCheck)
CONTEXT = {
    "slug": "demo_paper", "scale": "laptop", "datasets": ["toy"], "blocked": {}, "synthetic": [],
}  # fmt: skip


def rows(**columns):
    """A table of metrics from broadcast columns."""
    length = max(np.size(column) for column in columns.values())
    defaults = {
        "dataset": "toy", "method": "ours", "seed": np.arange(length), "metric": "m", "unit": "", "reason": "",
    }  # fmt: skip
    columns = defaults | columns
    return pd.DataFrame({name: np.resize(column, length) for name, column in columns.items()})


def arms(gap, n=30, noise=0.1, seed=0):
    """Paired rows of two methods whose values differ by ``gap``."""
    rng = np.random.default_rng(seed)
    base = 1 + rng.normal(size=n)
    values = np.concatenate([base + gap + noise * rng.normal(size=n), base])
    return rows(value=values, method=np.repeat(["ours", "peer"], n), seed=np.tile(np.arange(n), 2))


def check(compare, **fields):
    return CHECK.validate_python({"metric": "m", "compare": compare, **fields})


AB = {"a": {"method": "ours"}, "b": {"method": "peer"}, "pair": ["seed"]}
NOISE = np.random.default_rng(1).normal(size=40)
TREND_X = np.tile(np.arange(1.0, 9.0), 5)
CASES = [
    ("bound", {"side": ">=", "value": 1.0, "of": "rows"}, rows(value=[1.0, 2.0]), REPRODUCED),
    ("bound", {"side": ">=", "value": 1.0, "of": "rows"}, rows(value=[1.0, 0.9]), CONTRADICTED),
    ("bound", {"side": "<=", "value": 0.1, "against": 1.0, "of": "rows"}, rows(value=[0.0, 0.5]), UNDECIDED),
    ("bound", {"side": "<=", "value": 0.0, "of": "rows"}, rows(value=[0.0, 0.0]), REPRODUCED),
    ("bound", {"side": ">", "value": 0.5}, rows(value=1 + 0.1 * NOISE), REPRODUCED),
    ("bound", {"side": "<", "value": 0.5}, rows(value=1 + 0.1 * NOISE), CONTRADICTED),
    ("bound", {"side": ">", "value": 1.0}, rows(value=1 + 0.1 * (NOISE - NOISE.mean())), UNDECIDED),
    ("bound", {"side": ">", "value": 0.5, "of": "median"}, rows(value=1 + 0.1 * NOISE), REPRODUCED),
    ("bound", {"side": ">=", "value": 0.9, "of": "share"}, rows(value=[1.0] * 100), REPRODUCED),
    ("bound", {"side": ">=", "value": 0.9, "of": "share"}, rows(value=[1.0] * 10), UNDECIDED),
    ("bound", {"side": ">=", "value": 0.9, "of": "share"}, rows(value=[1.0, 0.0] * 50), CONTRADICTED),
    ("difference", {**AB, "side": ">"}, arms(0.5), REPRODUCED),
    ("difference", {**AB, "side": ">"}, arms(-0.5), CONTRADICTED),
    ("difference", {**AB, "side": ">"}, arms(0.0), UNDECIDED),
    ("difference", {**AB, "side": ">", "value": 1.0}, arms(0.5), CONTRADICTED),
    ("difference", {**AB, "side": ">", "of": "median"}, arms(0.5), REPRODUCED),
    ("difference", {**AB, "side": ">", "pair": []}, arms(5.0), REPRODUCED),
    ("difference", {**AB, "side": ">", "pair": []}, arms(0.05), UNDECIDED),
    ("equivalence", {**AB, "margin": 0.2}, arms(0.0), REPRODUCED),
    ("equivalence", {**AB, "margin": 0.2}, arms(0.5), CONTRADICTED),
    ("non_inferiority", {**AB, "margin": 0.2, "better": "higher"}, arms(-0.05), REPRODUCED),
    ("non_inferiority", {**AB, "margin": 0.2, "better": "higher"}, arms(0.5), REPRODUCED),
    ("non_inferiority", {**AB, "margin": 0.2, "better": "lower"}, arms(0.5), CONTRADICTED),
    ("trend", {"over": "x", "statistic": "slope", "side": ">"}, rows(value=TREND_X + NOISE, x=TREND_X), REPRODUCED),
    ("trend", {"over": "x", "statistic": "slope", "side": ">"}, rows(value=NOISE, x=TREND_X), UNDECIDED),
    ("trend", {"over": "x", "statistic": "spearman", "side": "<"}, rows(value=TREND_X + NOISE, x=TREND_X), CONTRADICTED),
    ("trend", {"over": "x", "statistic": "loglog", "within": [-0.7, -0.3]}, rows(value=TREND_X**-0.5, x=TREND_X), REPRODUCED),
    ("trend", {"over": "x", "statistic": "loglog", "within": [-0.7, -0.3]}, rows(value=TREND_X**-1.5, x=TREND_X), CONTRADICTED),
    ("order", {"cells": "k", "target": 3, "better": "higher"}, rows(value=[1, 2, 9, 3] * 10 + 0.1 * NOISE, k=[1, 2, 3, 4] * 10, seed=np.repeat(np.arange(10), 4)), REPRODUCED),
    ("order", {"cells": "k", "target": 2, "better": "higher"}, rows(value=[1, 2, 9, 3] * 10 + 0.1 * NOISE, k=[1, 2, 3, 4] * 10, seed=np.repeat(np.arange(10), 4)), CONTRADICTED),
    ("order", {"cells": "k", "target": 1, "better": "lower", "cluster": ["seed"]}, rows(value=[1, 2, 9, 3] * 10 + 0.1 * NOISE, k=[1, 2, 3, 4] * 10, seed=np.repeat(np.arange(10), 4)), REPRODUCED),
    ("count", {"side": ">=", "value": 1, "group": ["seed"], "at_least": 5}, rows(value=[1.0] * 5), REPRODUCED),
    ("count", {"side": ">=", "value": 1, "group": ["seed"], "at_least": 4}, rows(value=[1.0, 1, 1, 0, 0]), CONTRADICTED),
    ("count", {"side": ">=", "value": 1, "group": ["seed"], "at_least": 4, "against": 3}, rows(value=[1.0, 1, 1, 0, 0]), UNDECIDED),
]  # fmt: skip


@pytest.mark.parametrize(("compare", "fields", "table", "verdict"), CASES)
def test_each_comparison_gives_the_verdict_and_its_control_fails(compare, fields, table, verdict):
    result = judge_check(check(compare, **fields), table)
    assert result["verdict"] == verdict
    if verdict == REPRODUCED:
        assert result["control"]["verdict"] != REPRODUCED


RATIO_CASES = [
    ({"side": ">", "value": 2.0}, 1.0, REPRODUCED),
    ({"side": ">", "value": 2.0}, 0.1, CONTRADICTED),
    ({"side": "<", "value": 1.2}, 0.0, REPRODUCED),
    ({"side": "<=", "value": 0.85, "against": 1.0}, -0.3, REPRODUCED),
    ({"side": "<=", "value": 0.85, "against": 1.0}, -0.1, UNDECIDED),
    ({"side": "<=", "value": 0.85, "against": 1.0}, 0.1, CONTRADICTED),
]


@pytest.mark.parametrize("of", ["gmean", "median", "of_means"])
@pytest.mark.parametrize(("region", "log_gap", "verdict"), RATIO_CASES)
def test_ratios(of, region, log_gap, verdict):
    table = arms(log_gap, noise=0.01)
    table["value"] = np.exp(table["value"])
    result = judge_check(check("ratio", **AB, **region, of=of), table)
    assert result["effect"] == pytest.approx(np.exp(log_gap), rel=0.02)
    assert result["verdict"] == verdict
    if verdict == REPRODUCED:
        assert result["control"]["verdict"] != REPRODUCED


def test_a_check_that_accepts_everything_is_unmasked_by_its_control():
    """A tolerance larger than any difference between cells: the control reproduces, as it should."""
    table = rows(value=[1.0, 2.0] * 10, k=[1, 2] * 10, seed=np.repeat(np.arange(10), 2))
    result = judge_check(check("order", cells="k", target=2, within=5.0, better="higher"), table)
    assert result["verdict"] == REPRODUCED
    assert result["control"]["verdict"] == REPRODUCED


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(0)
    table = rows(
        value=np.repeat(rng.normal(size=12), 50) + 0.1 * rng.normal(size=600),
        family=np.repeat(np.arange(12), 50),
    )
    alone = judge_check(check("bound", side=">", value=0.0), table)["interval"]
    clustered = judge_check(check("bound", side=">", value=0.0, cluster=["family"]), table)[
        "interval"
    ]
    assert np.ptp(clustered) > 4 * np.ptp(alone)


@pytest.mark.parametrize("n", [5, 15])
def test_the_interval_of_a_mean_covers_as_often_as_it_says(n):
    rng = np.random.default_rng(0)
    estimates = [intervals.mean(sample) for sample in rng.normal(size=(300, n))]
    covered = np.mean([e.low <= 0.0 <= e.high for e in estimates])
    assert 0.89 <= covered <= 0.99


def test_the_difference_of_means_agrees_with_statsmodels():
    from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, 6), rng.normal(0, 2, 8)
    peer = CompareMeans(DescrStatsW(a), DescrStatsW(b)).tconfint_diff(usevar="unequal")
    ours = intervals.mean_difference(a, b)
    assert (ours.low, ours.high) == pytest.approx(peer)


CLAIM = {
    "id": "c1", "text": "…", "kind": "empirical", "datasets": ["toy"], "paper": None, "refuted_if": "",
    "note": "", "scales": ["laptop"],
    "checks": [check("difference", **AB, side=">").model_dump()],
}  # fmt: skip


def test_all_checks_of_a_claim_must_hold():
    claim = CLAIM | {"checks": [*CLAIM["checks"], check("difference", **AB, side="<").model_dump()]}
    (record,) = judge(claim, arms(0.5), CONTEXT)
    assert record["verdict"] == CONTRADICTED
    assert [c["verdict"] for c in record["checks"]] == [REPRODUCED, CONTRADICTED]


def test_a_blocked_data_set_blocks_only_its_record():
    claim = CLAIM | {"datasets": ["real", "toy"]}
    first, second = judge(claim, arms(0.5), CONTEXT | {"blocked": {"real": "fetch it"}})
    assert (first["verdict"], first["reason"]) == (BLOCKED, "fetch it")
    assert second["verdict"] == REPRODUCED
    assert claims.headline([first, second]) is second
    elsewhere = {"verdict": NOT_JUDGED}
    assert claims.headline([first, elsewhere]) is first


def test_another_scale_is_not_judged_but_its_numbers_are_kept():
    (record,) = judge(CLAIM, arms(0.5), CONTEXT | {"scale": "smoke"})
    assert record["verdict"] == NOT_JUDGED
    assert record["checks"][0]["effect"] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "absent"}, "claim c1 on toy: no rows with metric='absent'"),
        ({"where": {"k": 3}}, "no column 'k'"),
        ({"a": {"method": "nobody"}}, "arm a has no rows"),
    ],
)
def test_a_claim_without_rows_is_an_error_that_names_it(change, message):
    claim = CLAIM | {"checks": [CLAIM["checks"][0] | change]}
    with pytest.raises(claims.ClaimError, match=message):
        judge(claim, arms(0.5), CONTEXT)


def test_rows_without_a_value_leave_a_claim_undecided_and_say_why():
    table = arms(0.5)
    table.loc[table["method"] == "ours", ["value", "reason"]] = [np.nan, "no successful trial"]
    (record,) = judge(CLAIM, table, CONTEXT)
    assert record["verdict"] == UNDECIDED
    assert "30 rows have no value (no successful trial)" in record["reason"]
    (record,) = judge(CLAIM, table, CONTEXT | {"scale": "smoke"})
    assert record["verdict"] == NOT_JUDGED


def test_an_incomplete_pair_is_named():
    with pytest.raises(claims.ClaimError, match="no partner for the pair"):
        judge(CLAIM, arms(0.5).iloc[1:], CONTEXT)
