import numpy as np
import pandas as pd
import pytest

from encore.papers.portfolio import Archive, Feasibility, ProfileSet


@pytest.fixture
def make():
    """Random archives with ties and duplicates, and profiles some of which nobody meets."""

    def make(seed, n=10, m=40, columns=3, weight=None, levels=6):
        rng = np.random.default_rng(seed)
        names = ["accuracy", "latency", "memory", "energy"][:columns]
        table = pd.DataFrame(
            rng.integers(0, levels, (n, columns)).astype(float),
            columns=names,
            index=[f"m{i}" for i in range(n)],
        )
        archive = Archive(table, {c: "max" if c == "accuracy" else "min" for c in names})
        bounds = pd.DataFrame(
            {
                f"{c}{'>=' if c == 'accuracy' else '<='}": rng.integers(-1, levels + 1, m)
                for c in names
            },
            dtype=float,
        )
        bounds = bounds.mask(rng.random(bounds.shape) < 0.15)
        if weight == "random":
            weight = rng.random(m)
        return archive, ProfileSet(bounds, weight)

    return make


@pytest.fixture
def build(make):
    """The feasibility of such an instance."""

    def build(seed, storage="packed", prune=True, **size):
        return Feasibility.build(*make(seed, **size), storage=storage, prune=prune)

    return build
