"""Settings of the paper `sparse_sos`."""

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from encore.core.config import Strict

TASKS = ("chains", "pendulum_swing", "packaged_graphs", "arms", "oscillators", "pose_loops")


class Checks(Strict):
    """What is checked of gradients, certificates and memory."""

    sizes: dict[str, list[PositiveInt]] = Field(description="sizes of each task's instances")
    gradient_size: PositiveInt = Field(description="largest size whose gradient is differenced")
    mu: PositiveFloat = Field(description="barrier parameter of the bounds that are judged")
    mu_gradient: PositiveFloat = Field(description="of gradient checks, per largest coefficient")
    step: PositiveFloat = Field(description="relative step of central differences")
    mu_envelope: list[PositiveFloat] = Field(min_length=1)
    dense_size: PositiveInt = Field(description="variables of the dense certificate")


class Bench(Strict):
    """Timed backward passes."""

    sizes: dict[str, list[PositiveInt]]
    mu: PositiveFloat
    repeats: PositiveInt = Field(description="turns of fast methods; the least time counts")
    large_repeats: PositiveInt = Field(description="turns of slow methods")
    max_kkt: PositiveInt = Field(description="largest dense KKT system")
    max_cholesky: PositiveInt = Field(description="largest dense Newton system")
    max_peer: PositiveInt = Field(description="largest KKT system that the peer is given")
    batch: PositiveInt = Field(description="programs of one structure that are solved in a batch")


class Settings(Strict):
    """What config/papers/sparse_sos.yaml may say at one scale."""

    datasets: list[str]
    seeds: list[NonNegativeInt] = Field(min_length=1)
    checks: Checks
    bench: Bench
    learn: dict[str, dict[str, float | int | list[str]]] = Field(
        description="options of each task's training"
    )

    @model_validator(mode="after")
    def _known(self) -> "Settings":
        for name, given in (
            ("checks.sizes", self.checks.sizes),
            ("bench.sizes", self.bench.sizes),
            ("learn", self.learn),
        ):
            if missing := {*TASKS, *self.datasets} - set(given):
                raise ValueError(f"{name} lacks {sorted(missing)}")
        return self
