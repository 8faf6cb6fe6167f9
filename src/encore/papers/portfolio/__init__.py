"""Deployment portfolio selection: K models of a measured archive that serve as many profiles as possible.

A profile is served only if one kept model meets its whole bundle of constraints.
"""

from encore.papers.portfolio.archive import Archive, remeasure
from encore.papers.portfolio.baselines import (
    accuracy_top,
    hypervolume_greedy,
    marginal_coverage,
    pareto_kmedoids,
    random_portfolio,
    scalarization,
    tchebycheff,
)
from encore.papers.portfolio.feasibility import Feasibility
from encore.papers.portfolio.profiles import DemandModel, ProfileSet
from encore.papers.portfolio.selection import Portfolio, select
from encore.papers.portfolio.theory import (
    finite_sample_bound,
    from_set_system,
    greedy_trap,
    sample_size,
    to_set_system,
)

__all__ = [
    "Archive",
    "DemandModel",
    "Feasibility",
    "Portfolio",
    "PortfolioSelector",
    "ProfileSet",
    "accuracy_top",
    "finite_sample_bound",
    "from_set_system",
    "greedy_trap",
    "hypervolume_greedy",
    "marginal_coverage",
    "pareto_kmedoids",
    "random_portfolio",
    "remeasure",
    "sample_size",
    "scalarization",
    "select",
    "tchebycheff",
    "to_set_system",
]


def __getattr__(name: str) -> object:
    if name == "PortfolioSelector":  # only this one needs scikit-learn, a second of import time
        from encore.papers.portfolio.estimator import PortfolioSelector

        return PortfolioSelector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
