"""The archive: models with measured accuracy and costs, and what a second measurement of it gives."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

Sense = Literal["max", "min"]


class Archive:
    """Measured models, one row each; the fixed set that a portfolio is chosen from.

    Args:
        table: one row per model, the index holding their names; it has every column of ``sense``
            (other columns are ignored), numbers in any unit.
        sense: for each column whether larger (``"max"``) or smaller (``"min"``) is better.
        missing: ``"error"`` refuses NaN; with ``"infeasible"`` a model never meets a bound on a
            column that it lacks.

    Attributes:
        names: list of the model names.
        columns: tuple of the column names, in the order of ``sense``.
        values: float64 array (models, columns).
        utility: the same, oriented so that larger is better; NaN became ``-inf``.

    Raises:
        ValueError: no models, duplicate names, a column that is not in the table, an unknown sense,
            or a value that is NaN (unless ``missing="infeasible"``) or infinite.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        sense: Mapping[str, Sense],
        *,
        missing: Literal["error", "infeasible"] = "error",
    ) -> None:
        if missing not in ("error", "infeasible"):
            raise ValueError(f"missing={missing!r}; expected 'error' or 'infeasible'")
        if not sense:
            raise ValueError("sense is empty; expected at least one column")
        for column, direction in sense.items():
            if direction not in ("max", "min"):
                raise ValueError(f"sense[{column!r}]={direction!r}; expected 'max' or 'min'")
            if column not in table.columns:
                raise ValueError(f"table lacks the column {column!r}; it has {list(table.columns)}")
        if len(table) == 0:
            raise ValueError("table has no rows; expected at least one model")
        if not table.index.is_unique:
            name = table.index[table.index.duplicated()][0]
            raise ValueError(f"duplicate model name {name!r}; names must be unique")
        self.names = list(table.index)
        self.columns = tuple(sense)
        self.sense = dict(sense)
        self.missing = missing
        self.values = table[list(self.columns)].to_numpy(dtype=np.float64)
        bad = np.isinf(self.values) | (np.isnan(self.values) & (missing == "error"))
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"model {self.names[row]!r} has {self.columns[column]}={self.values[row, column]}; "
                "expected a finite number"
            )
        self.utility = np.where(np.isnan(self.values), -np.inf, self.values * self._signs)

    @property
    def _signs(self) -> np.ndarray:
        return np.array([1.0 if self.sense[name] == "max" else -1.0 for name in self.columns])

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Archive({len(self)} models, {self.sense})"

    def column(self, name: str) -> int:
        """Position of a column.

        Raises:
            ValueError: there is no such column.
        """
        if name not in self.sense:
            raise ValueError(f"unknown column {name!r}; the archive has {list(self.columns)}")
        return self.columns.index(name)

    @cached_property
    def ascending(self) -> np.ndarray:
        """Each column sorted (NaN last), float64 (models, columns)."""
        return np.sort(self.values, axis=0)

    @cached_property
    def ranks(self) -> np.ndarray:
        """Average ranks scaled to [0, 1], 0 for the best model of a column; (models, columns)."""
        ranks = np.empty_like(self.utility)
        for position, utility in enumerate(self.utility.T):
            _, level, count = np.unique(-utility, return_inverse=True, return_counts=True)
            ranks[:, position] = (np.cumsum(count) - (count + 1) / 2)[level]
        return ranks / max(len(self) - 1, 1)

    def take(self, index: Sequence[int] | np.ndarray) -> "Archive":
        """The archive of some models, in the given order (positions)."""
        index = np.asarray(index, dtype=np.int64)
        names = pd.Index([self.names[i] for i in index])
        table = pd.DataFrame(self.values[index], columns=list(self.columns), index=names)
        return Archive(table, self.sense, missing=self.missing)

    def pareto(self, columns: Sequence[str] | None = None) -> np.ndarray:
        """Positions of the models that no other model dominates, ascending (int64).

        A model dominates another if it is at least as good in every column; of models that are equal
        in all columns the first is kept.  A dominated model meets a subset of the profiles that its
        dominator meets, so a portfolio needs no other models than these.

        Args:
            columns: the columns that count (all by default).

        Raises:
            ValueError: unknown column.
        """
        chosen = self.columns if columns is None else tuple(columns)
        return self._pareto(tuple(self.column(name) for name in chosen))

    def _pareto(self, columns: tuple[int, ...]) -> np.ndarray:
        if columns not in self._fronts:
            self._fronts[columns] = _front(self.utility[:, list(columns)])
        return self._fronts[columns]

    @cached_property
    def _fronts(self) -> dict[tuple[int, ...], np.ndarray]:
        return {}

    @staticmethod
    def families() -> list[str]:
        """Names of the 18 hardware families of the data set ``nb201_hw``."""
        from encore.papers.portfolio.data import FAMILIES

        return list(FAMILIES)

    @staticmethod
    def load_nb201_hw(family: str, folder: str | Path = "data/nb201_hw") -> "Archive":
        """The archive of one of ``families()``: all 15,625 NAS-Bench-201 networks as measured there.

        Raises:
            ValueError: unknown family.
            FileNotFoundError: the two parquet files are not in ``folder``.
        """
        from encore.papers.portfolio.data import load_nb201_hw

        return load_nb201_hw(family, folder)


def _front(utility: np.ndarray) -> np.ndarray:
    """Positions of the rows that no other row weakly dominates, the first of equal rows kept."""
    dense = [np.unique(column, return_inverse=True)[1] for column in utility.T]
    # A dominator has a larger rank sum (or is an equal row of smaller position): it comes first.
    index = np.argsort(-np.sum(dense, axis=0), kind="stable")
    rest, kept = utility[index], []
    while len(index):
        kept.append(index[0])
        better_somewhere = (rest > rest[0]).any(axis=1)
        rest, index = rest[better_somewhere], index[better_somewhere]
    return np.sort(np.array(kept, dtype=np.int64))


def remeasure(
    archive: Archive,
    cv: float | Mapping[str, float | np.ndarray],
    seed: int | Sequence[int],
) -> Archive:
    """The archive as another measurement would have given it (our choice: log-normal, mean 1).

    Every value is multiplied by ``exp(s z - s^2 / 2)`` with ``z`` standard normal and
    ``s^2 = log(1 + cv^2)``, so the factor has mean 1 and coefficient of variation ``cv``.

    Args:
        archive: what was measured; a model without a value stays without.
        cv: one number for all columns to be minimised, or by column a number or an array (models,).
        seed: of the noise.

    Raises:
        ValueError: a negative or non-finite ``cv``, an unknown column, or an array of another length.
    """
    if not isinstance(cv, Mapping):
        cv = {name: cv for name, sense in archive.sense.items() if sense == "min"}
    values, rng = archive.values.copy(), np.random.default_rng(seed)
    for name, level in cv.items():
        column, level = archive.column(name), np.asarray(level, dtype=np.float64)
        if level.ndim and level.shape != (len(archive),):
            raise ValueError(f"cv[{name!r}] has shape {level.shape}; expected ({len(archive)},)")
        if not (np.isfinite(level) & (level >= 0)).all():
            raise ValueError(f"cv[{name!r}] has a negative or non-finite entry; expected >= 0")
        sigma = np.sqrt(np.log1p(level**2))
        values[:, column] *= np.exp(sigma * rng.standard_normal(len(archive)) - sigma**2 / 2)
    table = pd.DataFrame(values, columns=list(archive.columns), index=pd.Index(archive.names))
    return Archive(table, archive.sense, missing=archive.missing)
