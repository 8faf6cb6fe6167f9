"""Oracles of PAPER_SLUG: closed form, brute force, invariance, or a peer library."""

import numpy as np
import pytest
from sklearn.neighbors import NearestCentroid

from encore.papers.PAPER_SLUG import Centroid


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 4)), rng.integers(3, size=60)


def test_agrees_with_scikit_learn(samples):
    peer = NearestCentroid().fit(*samples).predict(samples[0])
    assert (Centroid().fit(*samples).predict(samples[0]) == peer).all()


def test_a_row_that_is_not_finite_is_named(samples):
    samples[0][7, 2] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        Centroid().fit(*samples)
