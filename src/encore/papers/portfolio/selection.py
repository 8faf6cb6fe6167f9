"""Choosing K models of an archive so that the most profile weight is covered.

The objective is c(S) = sum_p w_p 1[some x in S meets all of p] / sum_p w_p: weighted maximum coverage,
NP-hard, monotone and submodular, so greedy selection reaches 1 - 1/e of the optimum (Nemhauser, Wolsey
& Fisher 1978), also when gains are evaluated lazily (Minoux 1978), and no polynomial algorithm does
better unless P = NP (Feige 1998).
"""

import heapq
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from encore.papers.portfolio.feasibility import Feasibility
from encore.papers.portfolio.profiles import check_weights

Method = Literal["greedy", "lazy", "exact", "stochastic"]


@dataclass(frozen=True, eq=False)
class Portfolio:
    """The models that were kept, in the order in which they were chosen.

    Attributes:
        indices: positions in the archive, int64 (K,).
        names: their names.
        coverage: covered share of the weight of profiles that some model of the archive meets.
        coverage_all: covered share of the weight of all profiles.
        gains: what each model added to ``coverage``, float64 (K,).
        curve: coverage of the first 1..K models, float64 (K,).
        bound: no portfolio of this size can cover more than this.
        optimal: whether ``coverage`` reaches ``bound``.
        method: how they were chosen.
    """

    indices: np.ndarray
    names: list[Any]
    coverage: float
    coverage_all: float
    gains: np.ndarray
    curve: np.ndarray
    bound: float
    optimal: bool
    method: str

    def to_dict(self) -> dict[str, Any]:
        """The same as plain lists and numbers, for JSON."""
        plain = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in asdict(self).items()
        }
        return plain | {"names": [getattr(name, "item", lambda n=name: n)() for name in self.names]}


def quantize(weight: np.ndarray) -> np.ndarray:
    """Weights as whole numbers (held in float64) whose sums are exact in any order.

    With at most 2^53 as total, every storage and every order of summation gives the same gains to the
    last bit, so ties are ties everywhere.  The relative rounding is about 2^-40 for 2,000 profiles.
    """
    if np.ptp(weight) == 0:
        return np.ones_like(weight)
    bits = 52 - math.ceil(math.log2(len(weight) + 1))
    return np.rint(weight / weight.max() * 2.0**bits)


def select(
    feasibility: Feasibility,
    k: int,
    *,
    method: Method = "greedy",
    weights: Sequence[float] | np.ndarray | None = None,
    must_include: Sequence[Any] = (),
    forbid: Sequence[Any] = (),
    seed: int | None = None,
    epsilon: float = 0.1,
    sample: int | None = None,
    time_limit: float = 60.0,
) -> Portfolio:
    """Choose ``k`` models; ties go to the model that comes first in the archive.

    Args:
        feasibility: models x profiles.
        k: number of models to keep.  Once every profile is covered, the rest are the first models
            left, the undominated ones before the others.
        method: ``"greedy"``; ``"lazy"`` (same result, fewer evaluations); ``"stochastic"`` (each step
            looks at a random sample of models; Mirzasoleiman et al. 2015); ``"exact"`` (integer
            program, HiGHS).
        weights: of the profiles, instead of those of the profile set.
        must_include: names or positions of models that are kept in any case; they count in ``k``.
        forbid: names or positions of models that must not be kept.
        seed: of ``"stochastic"``.
        epsilon: ``"stochastic"`` looks at ceil(n / k * log(1 / epsilon)) models a step ...
        sample: ... or at this many (all of them: the same result as greedy).
        time_limit: seconds after which ``"exact"`` returns the best portfolio so far with its bound.

    Raises:
        ValueError: ``k`` < 1, an unknown method or model, a model both included and forbidden, more
            included models than ``k``, bad weights, or no profile that any model meets.

    Warns:
        UserWarning: ``k`` exceeds the number of models; all are returned.
    """
    if method not in ("greedy", "lazy", "exact", "stochastic"):
        raise ValueError(f"method={method!r}; expected greedy, lazy, exact or stochastic")
    fixed, banned = _positions(feasibility, must_include), _positions(feasibility, forbid)
    k = _check_size(k, len(feasibility.archive), fixed, banned)
    feasible = feasibility.feasible
    if len(banned) and np.isin(banned, feasibility.kept).any():
        # A pruned model may be needed once its dominator is forbidden.
        feasibility = Feasibility.build(
            feasibility.archive, feasibility.profiles, feasibility.storage, exclude=banned
        )
    weight = feasibility.profiles.weight
    if weights is not None:
        weight = check_weights(weights, len(weight))
    problem = _Problem(feasibility, weight, feasible, fixed, k)
    if method == "exact":
        chosen, bound = _exact(problem, time_limit)
    elif method == "lazy":
        chosen, bound = _lazy(problem), None
    else:
        size = None
        if method == "stochastic":
            n = len(feasibility.kept)
            size = sample if sample is not None else math.ceil(n / k * math.log(1 / epsilon))
            if size < 1:
                raise ValueError(f"sample={size}; expected at least 1")
        chosen, bound = _greedy(problem, size, seed)
    chosen += _spare(feasibility, [*chosen, *banned], k - len(chosen))
    return portfolio(
        feasibility,
        chosen,
        method=method,
        weight=weight,
        feasible=feasible,
        bound=bound,
        fixed=fixed,
    )


def portfolio(
    feasibility: Feasibility,
    indices: Sequence[int] | np.ndarray,
    *,
    method: str,
    weight: np.ndarray | None = None,
    feasible: np.ndarray | None = None,
    bound: float | None = None,
    fixed: np.ndarray | None = None,
) -> Portfolio:
    """Describe a choice of models by what it covers; without ``bound`` one is computed.

    Args:
        feasibility: models x profiles.
        indices: positions of the chosen models.
        method: what to call it.
        weight: of the profiles, instead of those of the profile set.
        feasible: profiles that count in the denominator of ``coverage``, bool (profiles,).
        bound: upper bound on the coverage of portfolios of this size.
        fixed: positions of models that had to be included.

    Raises:
        ValueError: no profile is met by any model.
    """
    indices = np.asarray(indices, dtype=np.int64)
    weight = quantize(feasibility.profiles.weight if weight is None else weight)
    rows = feasibility.rows(indices)
    whole = weight[feasibility.feasible if feasible is None else feasible].sum()
    if whole == 0:
        raise ValueError("no profile is met by any model")
    curve = np.logical_or.accumulate(rows, axis=0) @ weight / whole
    if bound is None:
        bound = _upper_bound(feasibility, rows, weight, whole, fixed)
    coverage = float(curve[-1])
    return Portfolio(
        indices=indices,
        names=[feasibility.archive.names[i] for i in indices],
        coverage=coverage,
        coverage_all=float(curve[-1] * whole / weight.sum()),
        gains=np.diff(curve, prepend=0.0),
        curve=curve,
        bound=max(bound, coverage),
        optimal=bool(coverage >= bound - 1e-9),
        method=method,
    )


def _upper_bound(
    feasibility: Feasibility,
    rows: np.ndarray,
    weight: np.ndarray,
    whole: float,
    fixed: np.ndarray | None,
) -> float:
    """Smallest of c(S_j) + the sum of the k largest gains given S_j, over all prefixes S_j.

    By submodularity each is an upper bound for every portfolio of k models.  Included models that
    pruning left out count as further candidates.
    """
    k, best, live = len(rows), 1.0, weight.copy()
    extra = feasibility.rows(fixed if fixed is not None else np.array([], dtype=np.int64))
    for j in range(k + 1):
        gains = np.concatenate([feasibility.matrix.gains(live), extra @ live])
        best = min(best, (weight.sum() - live.sum() + _largest(gains, k)) / whole)
        if j < k:
            live[rows[j]] = 0.0
    return float(best)


class _Problem:
    """What all methods work on: candidate rows, exact weights, and what is covered already."""

    def __init__(
        self,
        feasibility: Feasibility,
        weight: np.ndarray,
        feasible: np.ndarray,
        fixed: np.ndarray,
        k: int,
    ) -> None:
        self.feasibility, self.fixed, self.k = feasibility, fixed, k
        self.kept, self.matrix = feasibility.kept, feasibility.matrix
        self.weight = quantize(weight)
        self.whole = float(self.weight[feasible].sum())
        if self.whole == 0:
            raise ValueError("no profile is met by any model")
        self.live = self.weight.copy()
        self.free = np.ones(len(self.kept), dtype=bool)
        if len(fixed):
            self.live[feasibility.covered_by(fixed)] = 0.0
            self.free = ~np.isin(self.kept, fixed)

    def row(self, position: int) -> np.ndarray:
        return self.matrix.rows(np.array([position]))[0]


def _greedy(
    problem: _Problem, size: int | None = None, seed: int | None = None
) -> tuple[list[int], float | None]:
    """The chosen models, and the upper bound that the gains seen on the way give (all of them)."""
    chosen, live, free = list(problem.fixed), problem.live.copy(), problem.free.copy()
    rng, whole = np.random.default_rng(seed), problem.weight.sum()
    bound = np.inf
    while len(chosen) < problem.k and free.any():
        if size is not None and size < free.sum():
            looked = np.sort(rng.choice(np.flatnonzero(free), size, replace=False))
            best = int(looked[np.argmax(problem.matrix.gains(live, looked))])
        else:
            gains = problem.matrix.gains(live)
            bound = min(bound, whole - live.sum() + _largest(gains, problem.k - len(problem.fixed)))
            gains[~free] = -1.0
            best = int(np.argmax(gains))
        chosen.append(int(problem.kept[best]))
        free[best] = False
        live[problem.row(best)] = 0.0
    known = size is None and np.isfinite(bound)
    return chosen, min(1.0, float(bound / problem.whole)) if known else None


def _largest(gains: np.ndarray, k: int) -> float:
    """Sum of the k largest gains (many are equal, on which partitioning is slower than sorting)."""
    return float(np.sort(gains)[-k:].sum())


def _lazy(problem: _Problem) -> list[int]:
    """Old gains are upper bounds of new ones: a model that stays first when recomputed is the best."""
    chosen, live = list(problem.fixed), problem.live.copy()
    first = problem.matrix.gains(live)
    queue = [(-first[i], i, len(chosen)) for i in np.flatnonzero(problem.free)]
    heapq.heapify(queue)
    while len(chosen) < problem.k and queue:
        _, best, computed = queue[0]
        if computed == len(chosen):
            heapq.heappop(queue)
            chosen.append(int(problem.kept[best]))
            live[problem.row(best)] = 0.0
        else:
            heapq.heapreplace(queue, (-(problem.row(best) @ live), best, len(chosen)))
    return chosen


def _exact(problem: _Problem, time_limit: float) -> tuple[list[int], float]:
    """Maximum coverage as an integer program: max w y, y_p <= sum of z over the models that meet p."""
    greedy, _ = _greedy(problem)
    room = problem.k - len(problem.fixed)
    rows = problem.matrix.rows(np.flatnonzero(problem.free)) & (problem.live > 0)
    before = problem.weight.sum() - problem.live.sum()
    found = problem.weight[problem.feasibility.covered_by(greedy)].sum()
    if not rows.any() or room == 0:
        return greedy, float(found / problem.whole)
    rows, weight = _merge_columns(rows, problem.live)
    undominated = _undominated(rows)
    rows, candidates = rows[undominated], problem.kept[problem.free][undominated]
    best, proved, limit = _solve(rows, weight, room, time_limit)
    reached = before + weight[rows[best].any(axis=0)].sum()
    chosen = greedy
    if reached > found:
        chosen = [*problem.fixed, *(int(candidates[i]) for i in _by_gain(rows, weight, best))]
        chosen += [i for i in greedy if i not in chosen][: problem.k - len(chosen)]
        found = reached
    # The solver's tolerance is 1e-6 of the objective: a smaller gap is none.
    bound = max(before + limit, found)
    if proved and bound - found <= 1e-6 * weight.sum():
        bound = found
    return chosen, float(bound / problem.whole)


def _spare(feasibility: Feasibility, taken: Sequence[int], n: int) -> list[int]:
    """The first ``n`` models of the archive that are not taken: they add nothing, but were asked for."""
    if n <= 0:
        return []
    return np.setdiff1d(np.arange(len(feasibility.archive)), taken)[:n].tolist()


def _merge_columns(rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Profiles that the same models meet become one with their weights added; unmet ones go."""
    met = rows.any(axis=0)
    unique, inverse = np.unique(np.packbits(rows[:, met], axis=0), axis=1, return_inverse=True)
    merged = np.bincount(inverse.ravel(), weights=weight[met], minlength=unique.shape[1])
    return np.unpackbits(unique, axis=0, count=len(rows)).astype(bool), merged


def _undominated(rows: np.ndarray) -> np.ndarray:
    """Positions of rows that are no subset of another (the first of equal ones is kept)."""
    common = rows.astype(np.float64) @ rows.T.astype(np.float64)
    size = np.diag(common)
    subset = common == size[:, None]  # row i lies in row j
    equal = subset & subset.T
    first = np.arange(len(rows))[:, None] > np.arange(len(rows))[None, :]
    return np.flatnonzero(~((subset & ~equal) | (equal & first)).any(axis=1))


def _solve(
    rows: np.ndarray, weight: np.ndarray, k: int, time_limit: float
) -> tuple[np.ndarray, bool, float]:
    """Chosen rows, whether optimality was proved, and an upper bound on the covered weight."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, hstack

    n, m = rows.shape
    scale = weight.sum()
    link = hstack([csr_array(-rows.T.astype(np.float64)), eye_array(m)])
    size = csr_array(np.concatenate([np.ones(n), np.zeros(m)])[None, :])
    result = milp(
        -np.concatenate([np.zeros(n), weight / scale * m]),
        integrality=np.concatenate([np.ones(n), np.zeros(m)]),
        bounds=Bounds(0.0, 1.0),
        constraints=[LinearConstraint(link, ub=0.0), LinearConstraint(size, ub=float(k))],
        options={"time_limit": float(time_limit), "mip_rel_gap": 0.0},
    )
    if result.x is None:
        return np.array([], dtype=np.int64), False, float(scale)
    chosen = np.flatnonzero(result.x[:n] > 0.5)
    return chosen, result.status == 0, float(-result.mip_dual_bound * scale / m)


def _by_gain(rows: np.ndarray, weight: np.ndarray, chosen: np.ndarray) -> list[int]:
    """The chosen rows in greedy order, so that gains diminish."""
    order, live, rest = [], weight.copy(), list(chosen)
    while rest:
        best = max(rest, key=lambda i: (float(rows[i] @ live), -i))
        rest.remove(best)
        order.append(int(best))
        live[rows[best]] = 0.0
    return order


def _positions(feasibility: Feasibility, models: Sequence[Any]) -> np.ndarray:
    """Positions of models given by name or, where names are no strings, by position."""
    if not len(models):
        return np.array([], dtype=np.int64)
    names = feasibility.archive.names
    lookup = {name: i for i, name in enumerate(names) if isinstance(name, str)}
    positions = []
    for model in models:
        if isinstance(model, str) and model in lookup:
            positions.append(lookup[model])
        elif isinstance(model, int | np.integer) and 0 <= model < len(names):
            positions.append(int(model))
        else:
            raise ValueError(
                f"unknown model {model!r}; expected a name or a position 0..{len(names) - 1}"
            )
    return np.array(list(dict.fromkeys(positions)), dtype=np.int64)


def _check_size(k: int, n: int, fixed: np.ndarray, banned: np.ndarray) -> int:
    if not isinstance(k, int | np.integer) or isinstance(k, bool):
        raise TypeError(f"k={k!r}; expected an integer")
    if k < 1:
        raise ValueError(f"k={k}; expected at least 1")
    if len(both := np.intersect1d(fixed, banned)):
        raise ValueError(f"model {int(both[0])} is both in must_include and in forbid")
    if len(fixed) > k:
        raise ValueError(f"must_include has {len(fixed)} models; k={k}")
    if k > n - len(banned):
        warnings.warn(
            f"k={k} exceeds the {n - len(banned)} models of the archive; all are returned",
            stacklevel=3,
        )
    return min(int(k), n - len(banned))
