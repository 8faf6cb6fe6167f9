"""Settings of the paper `prat`."""

from typing import Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from encore.core.config import Strict


class Draw(Strict):
    """One draw of the hyper-parameters that every method is tuned over."""

    lr: PositiveFloat
    weight_decay: NonNegativeFloat
    dropout: float = Field(ge=0, lt=1)
    layers: PositiveInt


class Shape(Strict):
    """Widths, the same for every network that has them."""

    hidden: PositiveInt
    heads: PositiveInt
    metric_dim: PositiveInt = Field(description="dimensions of each head's metric space")


class Schedule(Strict):
    """Full-batch training."""

    epochs: PositiveInt
    every: PositiveInt = Field(description="epochs between validations")
    patience: PositiveInt = Field(description="validations without a better one that end it")


class Csbm(Strict):
    """Contextual stochastic block models, one for every h and seed."""

    h: list[float] = Field(min_length=1, description="shares of edges within a class")
    n: PositiveInt
    classes: int = Field(ge=2)
    degree: PositiveFloat
    mu: NonNegativeFloat = Field(description="length of the class centroids")
    features: PositiveInt
    affinity: Literal["partner", "uniform"]


class Tuning(Strict):
    """Where the draws are chosen: splits and generated graphs that no claim is judged on."""

    splits: dict[str, list[Literal[0, 1]]]
    schedule: Schedule
    h: list[float] = Field(min_length=1)
    csbm_seeds: list[NonNegativeInt] = Field(min_length=1)


class Settings(Strict):
    """What config/papers/prat.yaml may say at one scale."""

    datasets: list[str] = Field(min_length=1)
    seeds: list[NonNegativeInt] = Field(min_length=1, description="the k-th split has the k-th")
    graphs: dict[str, dict[str, list[str]]] = Field(
        description="graphs that are trained on, by data set and job"
    )
    diagnosed: dict[str, list[str]] = Field(description="graphs that only the index is computed of")
    splits: dict[str, list[int]] = Field(description="judged splits of each graph")
    methods: dict[str, list[str]] = Field(description="by data set")
    left_out: dict[str, list[str]] = Field(description="methods too dear for a graph")
    shape: Shape
    schedule: Schedule
    csbm: Csbm
    csbm_seeds: list[NonNegativeInt] = Field(min_length=1)
    tuning: Tuning
    draws: list[Draw] = Field(min_length=1)
    choice: dict[str, dict[str, NonNegativeInt]] = Field(
        description="by graph and method: the draw with the best validation score on tuning splits"
    )

    @model_validator(mode="after")
    def _consistent(self) -> "Settings":
        for graph, splits in self.splits.items():
            if tuned := {0, 1} & set(splits):
                raise ValueError(f"splits: {graph} is judged on {sorted(tuned)}, tuned on 0 and 1")
            if len(splits) > len(self.seeds):
                raise ValueError(f"splits: {graph} has {len(splits)}, seeds only {len(self.seeds)}")
        used = {
            graph for jobs in self.graphs.values() for names in jobs.values() for graph in names
        }
        if missing := used - set(self.splits):
            raise ValueError(f"splits lacks {sorted(missing)}")
        for graph, methods in self.choice.items():
            if wrong := {m: k for m, k in methods.items() if k >= len(self.draws)}:
                raise ValueError(
                    f"choice: {graph} names draws {wrong}; there are {len(self.draws)}"
                )
        return self
