"""Experiments: portfolios chosen on one half of the profiles and scored on the other."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from encore.papers.portfolio import baselines
from encore.papers.portfolio.archive import Archive, remeasure
from encore.papers.portfolio.feasibility import Feasibility
from encore.papers.portfolio.profiles import DemandModel
from encore.papers.portfolio.reference import greedy_dense, greedy_sets
from encore.papers.portfolio.selection import select
from encore.papers.portfolio.theory import (
    finite_sample_bound,
    from_set_system,
    pair_coverage,
    to_set_system,
)

BUNDLED = "bundled"
BASELINES = (
    "scalarization",
    "tchebycheff",
    "hypervolume_greedy",
    "pareto_kmedoids",
    "marginal_coverage",
    "accuracy_top",
    "random_portfolio",
)
TUNED = "scalarization_tuned"
SCOPES = ("all", "hardest")
_EQUAL = 1e-12  # coverages that differ by less are the same number of profiles

Choices = dict[str, dict[int, np.ndarray]]  # method -> K -> positions


def archives(table: pd.DataFrame, limit: int | None = None) -> dict[str, Archive]:
    """Archives of the first ``limit`` families of a table, by name."""
    from encore.papers.portfolio.data import archive_of

    names = list(table["family"].unique())[:limit]
    return {name: archive_of(table[table["family"] == name]) for name in names}


def seed_of(family: str, seed: int) -> list[int]:
    """Seed sequence of one cell: families draw independent profiles."""
    return [int(seed), crc32(family.encode())]


@dataclass
class Cell:
    """One family under one demand model and seed: two halves of its profiles."""

    train: Feasibility
    test: Feasibility

    @classmethod
    def draw(cls, archive: Archive, demand: str, n: int, seed: Sequence[int]) -> "Cell":
        """``n`` profiles to select on and ``n`` others to score on."""
        profiles = DemandModel(demand).sample(archive, 2 * n, seed)
        first = np.arange(2 * n) < n
        return cls(*(Feasibility.build(archive, profiles.take(half)) for half in (first, ~first)))

    @cached_property
    def masks(self) -> dict[str, np.ndarray]:
        """Scored test profiles by scope; the hardest are the quarter that fewest models meet."""
        met, share = self.test.feasible, self.test.coverability
        hardest = met & (share <= np.quantile(share[met], 0.25))
        return {"all": met, "hardest": hardest, "everyone": np.ones_like(met)}

    @property
    def coverability(self) -> float:
        """Median over feasible test profiles of the share of models that meet them."""
        return float(np.median(self.test.coverability[self.test.feasible]))


def archive_choices(feasibility: Feasibility, ks: Sequence[int], seed: Sequence[int]) -> Choices:
    """Portfolios of the baselines that look at the archive only."""
    top = max(ks)
    nested = {
        "scalarization": baselines.scalarization(feasibility, top, seed=seed),
        "tchebycheff": baselines.tchebycheff(feasibility, top, seed=seed),
        "hypervolume_greedy": baselines.hypervolume_greedy(feasibility, top, seed=seed),
        "accuracy_top": baselines.accuracy_top(feasibility, top),
        "random_portfolio": baselines.random_portfolio(feasibility, top, seed=seed),
    }
    choices = {name: {k: found.indices[:k] for k in ks} for name, found in nested.items()}
    medoids = {k: baselines.pareto_kmedoids(feasibility, k).indices for k in ks}
    return choices | {"pareto_kmedoids": medoids}


def profile_choices(feasibility: Feasibility, ks: Sequence[int]) -> Choices:
    """Portfolios of the methods that look at the profiles: bundled and marginal coverage."""
    top = max(ks)
    nested = {
        BUNDLED: select(feasibility, top).indices,
        "marginal_coverage": baselines.marginal_coverage(feasibility, top).indices,
    }
    return {name: {k: found[:k] for k in ks} for name, found in nested.items()}


def tuned_choices(
    feasibility: Feasibility, ks: Sequence[int], seed: Sequence[int], restarts: int
) -> Choices:
    """Scalarisation with its weight vectors tuned for bundled coverage of the selection half."""
    return {TUNED: baselines.tuned_scalarization(feasibility, ks, seed=seed, restarts=restarts)}


def score(
    feasibility: Feasibility, choices: Choices, masks: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """Coverage of every choice: columns method, k, scope, coverage."""
    used = np.unique(np.concatenate([i for by_k in choices.values() for i in by_k.values()]))
    met = feasibility.rows(used)
    scales = {scope: mask / max(mask.sum(), 1) for scope, mask in masks.items()}
    weights = np.stack(list(scales.values()), axis=1)
    rows = []
    for method, by_k in choices.items():
        for k, indices in by_k.items():
            covered = met[np.searchsorted(used, indices)].any(axis=0)
            rows += [(method, k, s, c) for s, c in zip(scales, covered @ weights, strict=True)]
    return pd.DataFrame(rows, columns=["method", "k", "scope", "coverage"])


def gains(test: pd.DataFrame, train: pd.DataFrame | None = None) -> pd.DataFrame:
    """Bundled coverage minus that of the best baseline, per K and scope.

    Args:
        test: scores on the test half; the best baseline is the best one there, which is hardest on the
            bundled portfolio.
        train: scores on the selection half, to choose the baseline there instead.

    Returns:
        Columns k, scope, gain, best (name of the baseline).
    """
    wide = test[test["scope"].isin(SCOPES)].pivot(
        index=["k", "scope"], columns="method", values="coverage"
    )
    rivals = wide[[name for name in BASELINES if name in wide.columns]]
    if train is None:
        best = rivals.idxmax(axis=1)
    else:
        chosen = train[(train["scope"] == "all") & train["method"].isin(rivals.columns)]
        chosen = chosen.pivot(index="k", columns="method", values="coverage")[rivals.columns]
        best = wide.index.get_level_values("k").map(chosen.idxmax(axis=1))
        best = pd.Series(best, index=wide.index)
    reached = [rivals.at[index, name] for index, name in best.items()]
    result = pd.DataFrame({"gain": wide[BUNDLED] - np.array(reached), "best": best})
    return result.reset_index()


def all_gains(test: pd.DataFrame, train: pd.DataFrame) -> pd.DataFrame:
    """``gains`` against three references, with whether the bundled portfolio wins or loses.

    Column ``reference``: ``test`` (best baseline on the test half), ``train`` (best on the selection
    half), ``tuned`` (scalarisation tuned for bundled coverage).
    """
    tuned = test[test["method"].isin([BUNDLED, TUNED])].replace(TUNED, BASELINES[0])
    parts = {"test": gains(test), "train": gains(test, train), "tuned": gains(tuned)}
    found = pd.concat([part.assign(reference=name) for name, part in parts.items()])
    found["best"] = found["best"].mask(found["reference"] == "tuned", TUNED)
    return found.assign(
        wins=(found["gain"] > _EQUAL).astype(float), loses=(found["gain"] < -_EQUAL).astype(float)
    )


def coverability_halves(cells: pd.DataFrame) -> pd.DataFrame:
    """For each family and demand whether its coverability is in the lower or upper half of all.

    Args:
        cells: columns family, demand, seed, coverability (median over profiles).

    Returns:
        Columns family, demand, half (``low`` or ``high``).
    """
    mean = cells.groupby(["family", "demand"])["coverability"].mean()
    half = np.where(mean.rank(method="first") <= len(mean) / 2, "low", "high")
    return pd.DataFrame({"half": half}, index=mean.index).reset_index()


# -- noise ----------------------------------------------------------------------------------------


def noise_levels(table: pd.DataFrame, levels: Sequence[float]) -> dict[str, dict[str, np.ndarray]]:
    """Coefficients of variation by column, for each level; ``own`` is what the archive itself recorded.

    Only measured costs are noisy: latency and energy, not memory and not accuracy.
    """
    noisy = [name for name in ("latency", "energy") if table[name].notna().any()]
    found = {f"{level:.2f}": dict.fromkeys(noisy, np.float64(level)) for level in levels}
    if table["latency_cv"].notna().any():
        found["own"] = {"latency": table["latency_cv"].fillna(0.0).to_numpy()}
    return found


def remeasured(
    archive: Archive,
    levels: Mapping[str, Mapping[str, np.ndarray]],
    demand: str,
    n: int,
    ks: Sequence[int],
    seed: Sequence[int],
) -> pd.DataFrame:
    """Coverage of portfolios when what was measured is not what is true.

    Two directions: ``choose`` selects on a noisy second measurement and scores by the archive,
    ``deploy`` selects on the archive and scores by a noisy second measurement.

    Returns:
        Columns metric (``noisy_coverage``, ``coverage_lost``, ``noise_gain``, ``overlap``), value,
        method, k, level, direction.
    """
    profiles = DemandModel(demand).sample(archive, 2 * n, seed)
    first = np.arange(2 * n) < n
    train, test = profiles.take(first), profiles.take(~first)
    clean = _choices(Feasibility.build(archive, train), ks, seed)
    before = _wide(Feasibility.build(archive, test), clean)
    parts = []
    for position, (level, cv) in enumerate(levels.items()):
        noisy = remeasure(archive, cv, [*seed, position])
        again = _choices(Feasibility.build(noisy, train), ks, seed)
        for direction, chosen, true in (("choose", again, archive), ("deploy", clean, noisy)):
            after = _wide(Feasibility.build(true, test), chosen)
            rivals = after[list(BASELINES)].max(axis=1)
            found = {
                ("noisy_coverage", BUNDLED): after[BUNDLED],
                ("noisy_coverage", "best_baseline"): rivals,
                ("coverage_lost", BUNDLED): before[BUNDLED] - after[BUNDLED],
                ("coverage_lost", "best_baseline"): before[list(BASELINES)].max(axis=1) - rivals,
                ("noise_gain", BUNDLED): after[BUNDLED] - rivals,
            }
            if direction == "choose":
                same = {
                    k: len(np.intersect1d(clean[BUNDLED][k], again[BUNDLED][k])) / k for k in ks
                }
                found["overlap", BUNDLED] = pd.Series(same)
            for (metric, method), by_k in found.items():
                part = by_k.rename("value").rename_axis("k").reset_index()
                parts.append(
                    part.assign(metric=metric, method=method, level=level, direction=direction)
                )
    return pd.concat(parts, ignore_index=True)


def _choices(feasibility: Feasibility, ks: Sequence[int], seed: Sequence[int]) -> Choices:
    return archive_choices(feasibility, ks, seed) | profile_choices(feasibility, ks)


def _wide(feasibility: Feasibility, choices: Choices) -> pd.DataFrame:
    """Coverage by K (rows) and method (columns)."""
    scores = score(feasibility, choices, {"all": feasibility.feasible})
    return scores.pivot(index="k", columns="method", values="coverage")


# -- theory ---------------------------------------------------------------------------------------


def spread_out(archives: Mapping[str, Archive], n: int) -> list[tuple[str, Archive]]:
    """``n`` of the families, evenly spaced in their order."""
    items = list(archives.items())
    return [items[i] for i in np.unique(np.linspace(0, len(items) - 1, n).round().astype(int))]


def sampling_gaps(
    archive: Archive, options: Mapping[str, float], m: int, seed: Sequence[int]
) -> dict[str, np.ndarray]:
    """Estimate coverage (of all profiles) from ``m`` i.i.d. ones of a population, many times.

    Returns:
        For each draw: ``pair_gap``, the largest error over all sets of one or two models, and
        ``pair_within``, whether it is within the bound for K = 2; ``greedy_gap`` and ``greedy_within``,
        the same for the K models that greedy selects on the sample; ``greedy_guaranteed``, whether
        these cover (1 - 1/e) OPT - (2 - 1/e) eps, with an upper bound for OPT.
    """
    k, delta = int(options["k"]), float(options["delta"])
    everyone = DemandModel("uniform").sample(archive, int(options["population"]), seed)
    population = Feasibility.build(archive, everyone)
    member = population.rows(population.kept)
    n, truth = len(member), pair_coverage(member)
    whole = population.feasible.mean()
    optimum = select(population, k).bound * whole
    eps = [finite_sample_bound(n, size, m, delta) for size in (min(2, n), min(k, n))]
    rng = np.random.default_rng([*seed, m])
    gaps = []
    for _ in range(int(options["draws"])):
        sample = rng.integers(0, member.shape[1], m)
        pair = np.abs(pair_coverage(member[:, sample]) - truth).max()
        found = select(Feasibility.build(archive, everyone.take(sample)), k)
        reached = population.coverage(found.indices, of="all")
        gaps.append((pair, abs(found.coverage_all - reached), reached))
    pair, greedy, reached = np.array(gaps).T
    least = (1 - 1 / np.e) * optimum - (2 - 1 / np.e) * eps[1]
    return {
        "pair_gap": pair,
        "pair_bound": np.full(len(pair), eps[0]),
        "pair_within": (pair <= eps[0]).astype(float),
        "greedy_gap": greedy,
        "greedy_bound": np.full(len(pair), eps[1]),
        "greedy_within": (greedy <= eps[1]).astype(float),
        "greedy_guaranteed": (reached >= least).astype(float),
    }


def reduction_errors(n: int, m: int, seed: int) -> int:
    """Disagreements between a random set system and its bundles: members, and the optimum of 3 sets."""
    rng = np.random.default_rng(seed)
    sets = [frozenset(np.flatnonzero(rng.random(m) < 0.3).tolist()) for _ in range(n - 1)]
    sets.append(frozenset(range(m)) - frozenset().union(*sets) or frozenset([0]))
    feasibility = Feasibility.build(*from_set_system(sets, m))
    wrong = sum(a != b for a, b in zip(sets, to_set_system(feasibility), strict=True))
    best = max(len(frozenset().union(*chosen)) for chosen in combinations(sets, 3))
    found = select(feasibility, 3, method="exact")
    return wrong + int(round(found.coverage_all * m) != best)


# -- storage and time -----------------------------------------------------------------------------


def storage_sizes(archive: Archive, m: int, seed: Sequence[int]) -> list[dict]:
    """Bytes of every storage, all models kept and pruned, as rows for the table."""
    profiles = DemandModel("uniform").sample(archive, m, seed)
    sizes = {
        (storage, prune): Feasibility.build(archive, profiles, storage, prune).nbytes
        for storage in ("packed", "dense", "csr")
        for prune in (False, True)
    }
    rows = [
        {"method": f"{storage}{'_pruned' if prune else ''}", "metric": "bytes", "value": size,
         "unit": "B", "better": "lower"}
        for (storage, prune), size in sizes.items()
    ]  # fmt: skip
    return [
        *rows,
        {"method": "packed", "metric": "share_of_dense", "better": "lower",
         "value": sizes["packed", False] / sizes["dense", False]},
        {"method": "packed_pruned", "metric": "pruning_factor", "better": "higher",
         "value": sizes["packed", False] / sizes["packed", True]},
    ]  # fmt: skip


def timed_methods(
    archive: Archive, m: int, k: int, repeats: int, seed: Sequence[int]
) -> list[dict]:
    """Seconds of greedy selection of ``k`` models by implementation, as rows for the table.

    All but ``packed_pruned`` work on every model of the archive; building is timed by itself.
    """
    profiles = DemandModel("uniform").sample(archive, m, seed)
    archive.pareto()
    full = Feasibility.build(archive, profiles, prune=False)
    pruned = Feasibility.build(archive, profiles)
    rows = full.rows(np.arange(len(archive)))
    sets = to_set_system(full)
    runs: dict[str, Callable[[], object]] = {
        "packed": lambda: select(full, k),
        "packed_pruned": lambda: select(pruned, k),
        "lazy": lambda: select(full, k, method="lazy"),
        "boolean_matrix": lambda: greedy_dense(rows, k),
        "python_sets": lambda: greedy_sets(sets, k),
        "build": lambda: Feasibility.build(archive, profiles, prune=False),
    }
    found = []
    for method, run in runs.items():
        for repeat in range(repeats):
            start = time.perf_counter()
            run()
            seconds = time.perf_counter() - start
            found.append(
                {"method": method, "metric": "seconds", "value": seconds, "unit": "s",
                 "better": "lower", "seed": int(seed[0]) + repeat}
            )  # fmt: skip
    return found


# -- cards ----------------------------------------------------------------------------------------

_CARD_SIZE, _CARD_POINTS = 3, 400


def cards(table: pd.DataFrame, params: Any) -> dict:
    """What a portfolio looks like: its three models on one family, and whom each serves.

    Args:
        table: of the data set.
        params: with ``seeds``, ``profiles`` and ``card_families``, of which the first in the table is
            shown (otherwise the table's first).

    Returns:
        ``family``, ``models`` (label, measurements, share of feasible test profiles served, and served
        by no other), and ``profiles`` (bounds of some test profiles and the model that serves them:
        its position in ``models``, -1 if none of them but another of the archive, -2 if nobody).
    """
    known = list(table["family"].unique())
    family = next((name for name in params.card_families if name in known), known[0])
    rows = table[table["family"] == family].reset_index(drop=True)
    archive = archives(rows)[family]
    cell = Cell.draw(archive, "uniform", params.profiles, seed_of(family, params.seeds[0]))
    chosen = select(cell.train, _CARD_SIZE)
    met = cell.test.rows(chosen.indices)
    feasible = cell.test.feasible
    server = np.where(met.any(axis=0), met.argmax(axis=0), np.where(feasible, -1, -2))
    alone = met & (met.sum(axis=0) == 1)
    models = [
        {"label": str(rows.at[i, "label"])}
        | {name: float(archive.values[i, c]) for c, name in enumerate(archive.columns)}
        | {"serves": float(met[j][feasible].mean()), "alone": float(alone[j][feasible].mean())}
        for j, i in enumerate(chosen.indices)
    ]
    bounds = cell.test.profiles.bounds.iloc[:_CARD_POINTS]
    return {
        "family": family,
        "coverage": float(met.any(axis=0)[feasible].mean()),
        "models": models,
        "profiles": {name: bounds[name].tolist() for name in bounds.columns}
        | {"server": server[:_CARD_POINTS].tolist()},
    }
