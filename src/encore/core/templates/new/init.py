"""FILL IN what this method is, in one line."""

from encore.papers.PAPER_SLUG.baselines import Majority
from encore.papers.PAPER_SLUG.method import Centroid

__all__ = ["Centroid", "Majority"]
