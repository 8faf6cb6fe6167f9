"""Settings of the paper ``portfolio``."""

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from encore.core.config import Strict

Demand = Literal["uniform", "accuracy_heavy", "edge_heavy", "correlated"]


class Exact(Strict):
    """Greedy against the certified optimum."""

    profiles: PositiveInt
    sizes: list[PositiveInt] = Field(min_length=1)
    time_limit: PositiveFloat = Field(description="seconds; a run that hits it is no certificate")


class Noise(Strict):
    """Portfolios when costs are measured a second time."""

    levels: list[PositiveFloat] = Field(description="coefficients of variation")
    sizes: list[PositiveInt] = Field(min_length=1)
    demand: Demand = "uniform"


class Sampling(Strict):
    """Coverage estimated from few profiles against a population of many."""

    families: PositiveInt
    population: PositiveInt
    sizes: list[PositiveInt] = Field(min_length=2)
    draws: PositiveInt = Field(description="samples per family and size")
    k: PositiveInt
    delta: PositiveFloat = Field(lt=1)


class Instances(Strict):
    """Generated instances for the theorems."""

    random: PositiveInt
    traps: PositiveInt
    models: PositiveInt = Field(le=12)
    profiles: PositiveInt


class Storage(Strict):
    """Bytes and seconds on one family."""

    profiles: list[PositiveInt] = Field(min_length=1)
    k: PositiveInt
    repeats: PositiveInt


class Settings(Strict):
    datasets: list[str] = Field(min_length=1)
    seeds: list[NonNegativeInt] = Field(min_length=1)
    families: PositiveInt | None = Field(description="at most this many families per data set")
    profiles: PositiveInt = Field(description="in each half: selection and scoring")
    sizes: list[PositiveInt] = Field(min_length=1, description="K")
    demands: list[Demand] = Field(min_length=1)
    restarts: PositiveInt = Field(description="weight sequences that tuned scalarisation tries")
    card_families: list[str] = Field(description="the first that a data set has is drawn")
    exact: Exact
    noise: Noise
    sampling: Sampling
    instances: Instances
    storage: Storage
