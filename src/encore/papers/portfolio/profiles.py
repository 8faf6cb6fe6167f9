"""Deployment profiles: bundles of constraints that one model has to meet together."""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pandas as pd

from encore.papers.portfolio.archive import Archive

DEMANDS = ("uniform", "accuracy_heavy", "edge_heavy", "correlated")
_OPERATORS = (">=", "<=")


class ProfileSet:
    """Profiles, one row each, with a weight.

    Args:
        bounds: a column for each constraint, named by a column of the archive and the relation that
            holds (``"accuracy>="``, ``"latency<="``); NaN leaves a profile unconstrained there.  A
            value equal to the bound meets it.
        weight: non-negative number per profile (ones by default).

    Attributes:
        required: dict from archive column to (sense, float64 array (profiles,)).
        weight: float64 array (profiles,).

    Raises:
        ValueError: no profiles or no columns, a column without ``>=`` or ``<=``, two bounds on the
            same column, or weights that are negative, not finite, all zero or of another length.
    """

    def __init__(
        self, bounds: pd.DataFrame, weight: Sequence[float] | np.ndarray | None = None
    ) -> None:
        if bounds.shape[0] == 0 or bounds.shape[1] == 0:
            raise ValueError(f"bounds has shape {bounds.shape}; expected rows and columns")
        self.required: dict[str, tuple[str, np.ndarray]] = {}
        for label in bounds.columns:
            name, operator = str(label)[:-2].strip(), str(label)[-2:]
            if operator not in _OPERATORS or not name:
                raise ValueError(f"bounds has the column {label!r}; expected 'name>=' or 'name<='")
            if name in self.required:
                raise ValueError(f"bounds constrains {name!r} twice")
            sense = "max" if operator == ">=" else "min"
            self.required[name] = (sense, bounds[label].to_numpy(dtype=np.float64))
        self.weight = check_weights(weight, len(bounds))

    def __len__(self) -> int:
        return len(self.weight)

    def __repr__(self) -> str:
        return f"ProfileSet({len(self)} profiles on {list(self.required)})"

    @property
    def bounds(self) -> pd.DataFrame:
        """The constraints as a table with the columns of the constructor."""
        return pd.DataFrame(
            {
                f"{name}{'>=' if sense == 'max' else '<='}": values
                for name, (sense, values) in self.required.items()
            }
        )

    def take(self, index: np.ndarray) -> "ProfileSet":
        """Some of the profiles (positions or a mask), with their weights."""
        bounds = self.bounds.iloc[np.arange(len(self))[index]].reset_index(drop=True)
        return ProfileSet(bounds, self.weight[index])

    def thresholds(self, archive: Archive) -> tuple[list[int], np.ndarray]:
        """Positions of the constrained columns and the utility required there (profiles, columns).

        Raises:
            ValueError: a bound on a column that the archive lacks, or against its sense.
        """
        columns, required = [], []
        for name, (sense, values) in self.required.items():
            columns.append(archive.column(name))
            if archive.sense[name] != sense:
                raise ValueError(
                    f"the bound on {name!r} asks for a {sense}imum direction, but the archive's "
                    f"sense is {archive.sense[name]!r}; expected "
                    f"'{name}{'>=' if archive.sense[name] == 'max' else '<='}'"
                )
            utility = values if sense == "max" else -values
            required.append(np.where(np.isnan(utility), -np.inf, utility))
        return columns, np.stack(required, axis=1)


def check_weights(weight: Sequence[float] | np.ndarray | None, n: int) -> np.ndarray:
    """Weights as float64 (n,), ones if None.

    Raises:
        ValueError: another length, a negative or non-finite entry (its row is named), or all zero.
    """
    if weight is None:
        return np.ones(n)
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"weight has shape {weight.shape}; expected ({n},)")
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"weight[{row}]={weight[row]}; expected a finite number >= 0")
    if weight.sum() == 0:
        raise ValueError("weight is zero everywhere; expected a positive entry")
    return weight


@dataclass(frozen=True)
class DemandModel:
    """How the demands of a fleet are distributed, in quantiles of the archive (our choice).

    A floor on a column to be maximised is its quantile ``q_a`` over the archive, a cap on a column to
    be minimised its quantile ``q_c`` (order statistics, so a bound is the value of some model):

    - ``uniform``: q_a ~ U(.3, .98), q_c ~ U(.05, .7), all independent;
    - ``accuracy_heavy``: q_a = .3 + .69 Beta(5, 1.5);
    - ``edge_heavy``: q_c = .05 + .65 Beta(1.2, 4);
    - ``correlated``: one z ~ U(0, 1) per profile, q_a = .3 + .68 z,
      q_c = clip(.05 + .65 (z + .25 N(0, 1)), .03, .8): who asks for more also pays more.

    Raises:
        ValueError: unknown name.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in DEMANDS:
            raise ValueError(f"demand model {self.name!r}; expected one of {DEMANDS}")

    def sample(self, archive: Archive, n: int, seed: int | Sequence[int]) -> ProfileSet:
        """``n`` independent profiles that constrain every column of the archive.

        Args:
            archive: whose quantiles the bounds are.
            n: number of profiles.
            seed: non-negative integer(s); other demand models draw other numbers from the same seed.

        Raises:
            ValueError: ``n`` < 1.
        """
        if n < 1:
            raise ValueError(f"n={n}; expected at least 1")
        rng = np.random.default_rng([crc32(self.name.encode()), *np.atleast_1d(seed)])
        common = rng.random(n)
        bounds = {}
        for position, (column, sense) in enumerate(archive.sense.items()):
            level = self._floor(rng, common) if sense == "max" else self._cap(rng, common)
            known = archive.ascending[:, position]
            known = known[: np.isfinite(known).sum()]
            rank = np.clip(np.ceil(level * len(known)).astype(np.int64) - 1, 0, len(known) - 1)
            bounds[f"{column}{'>=' if sense == 'max' else '<='}"] = known[rank]
        return ProfileSet(pd.DataFrame(bounds))

    def _floor(self, rng: np.random.Generator, common: np.ndarray) -> np.ndarray:
        if self.name == "accuracy_heavy":
            return 0.3 + 0.69 * rng.beta(5.0, 1.5, len(common))
        if self.name == "correlated":
            return 0.3 + 0.68 * common
        return rng.uniform(0.3, 0.98, len(common))

    def _cap(self, rng: np.random.Generator, common: np.ndarray) -> np.ndarray:
        if self.name == "edge_heavy":
            return 0.05 + 0.65 * rng.beta(1.2, 4.0, len(common))
        if self.name == "correlated":
            noise = 0.25 * rng.standard_normal(len(common))
            return np.clip(0.05 + 0.65 * (common + noise), 0.03, 0.8)
        return rng.uniform(0.05, 0.7, len(common))
