"""The same as a scikit-learn estimator."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from encore.papers.portfolio.archive import Archive
from encore.papers.portfolio.feasibility import Feasibility
from encore.papers.portfolio.profiles import ProfileSet
from encore.papers.portfolio.selection import Method, select


class PortfolioSelector(BaseEstimator):
    """Choose a portfolio on some profiles, then say which of its models serves others.

    Args:
        k: number of models to keep.
        method: as in ``select``.
        prefer: column by which the serving model is chosen among those that meet a profile, in the
            column's sense; by default the first in the order of selection.
        seed: of ``"stochastic"``.

    Attributes:
        portfolio_: the ``Portfolio`` after ``fit``.
        archive_: the archive it was chosen from.
    """

    def __init__(
        self,
        k: int,
        *,
        method: Method = "greedy",
        prefer: str | None = None,
        seed: int | None = None,
    ) -> None:
        self.k, self.method, self.prefer, self.seed = k, method, prefer, seed

    def fit(
        self, archive: Archive, profiles: ProfileSet, weights: Sequence[float] | None = None
    ) -> "PortfolioSelector":
        """Choose ``k`` models; errors as in ``Feasibility.build`` and ``select``."""
        if self.prefer is not None:
            archive.column(self.prefer)
        self.archive_ = archive
        self.portfolio_ = select(
            Feasibility.build(archive, profiles),
            self.k,
            method=self.method,
            weights=weights,
            seed=self.seed,
        )
        return self

    def predict(self, profiles: ProfileSet) -> np.ndarray:
        """Position of the kept model that serves each profile, or -1, int64 (profiles,)."""
        check_is_fitted(self, "portfolio_")
        order = self.portfolio_.indices
        if self.prefer is not None:
            utility = self.archive_.utility[order, self.archive_.column(self.prefer)]
            order = order[np.argsort(-utility, kind="stable")]
        rows = Feasibility.build(self.archive_.take(order), profiles, prune=False).rows(
            np.arange(len(order))
        )
        return np.where(rows.any(axis=0), order[rows.argmax(axis=0)], -1)

    def score(self, profiles: ProfileSet, y: Any = None) -> float:
        """Coverage of the given profiles, among those that some model of the archive meets."""
        check_is_fitted(self, "portfolio_")
        return Feasibility.build(self.archive_, profiles).coverage(self.portfolio_.indices)
