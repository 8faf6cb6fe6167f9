"""Settings of the paper `lyapunov_observer`."""

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


class Pretrain(Strict):
    """Stage 1: Lyapunov decrease at sampled error states."""

    xi: NonNegativeFloat = Field(description="margin asked of F_V at every sampled point")
    gamma: NonNegativeFloat = Field(description="weight decay")
    r_min: PositiveFloat = Field(description="inner radius of the shell of error states")
    r_max: PositiveFloat = Field(description="outer radius of the shell of error states")
    learning_rate: PositiveFloat
    batch: PositiveInt = Field(description="fresh error states per step")
    max_steps: PositiveInt
    check_points: PositiveInt = Field(description="fresh points of one stopping check")
    test_points: PositiveInt = Field(description="fresh points that measure the violation rate")


class Finetune(Strict):
    """Stage 2: descent on the smooth largest eigenvalue of H(theta)."""

    margin: PositiveFloat = Field(description="stop at lambda_max(H) < -margin")
    beta: NonNegativeFloat = Field(description="weight decay")
    learning_rate: PositiveFloat
    multiplier_rate: PositiveFloat = Field(description="learning rate of the log-multipliers")
    max_iterations: PositiveInt
    max_seconds: PositiveFloat


class Estimation(Strict):
    """Closed-loop trials that measure the estimation error of the three strategies."""

    trials: PositiveInt
    seconds: PositiveFloat
    dt: PositiveFloat


class Theory(Strict):
    """Certified balls in the shell of stage 1, and coverage of a ring of a plane of error states."""

    balls: PositiveInt
    points: PositiveInt = Field(description="checked points of each ball")
    seed: NonNegativeInt = Field(description="of the plane, where no choice was made on it")
    plane_net: str = Field(description="the network of the plane")
    xi: NonNegativeFloat = Field(description="margin of stage 1 for the plane")
    max_steps: PositiveInt = Field(description="steps of stage 1 for the plane")
    r_min: PositiveFloat = Field(description="inner radius of the ring")
    r_max: PositiveFloat = Field(description="outer radius of the ring")
    pitch: PositiveFloat = Field(description="cells that bound the certified radius from below")
    repeats: PositiveInt = Field(description="independent draws of the sampled states")
    samples: list[PositiveInt] = Field(min_length=3, description="numbers T of sampled states")
    own: PositiveInt = Field(description="samples whose own radii are computed in each draw")
    shown: PositiveInt = Field(description="balls drawn in the figure")


class Robustness(Strict):
    """Closed-loop trials under structured mismatch, against linear observers tuned on other seeds."""

    trials: PositiveInt
    sigmas: list[NonNegativeFloat] = Field(min_length=1, description="relative sizes of mismatch")
    seconds: PositiveFloat
    dt: PositiveFloat
    tuning_seeds: list[NonNegativeInt] = Field(min_length=1)
    omega_0: list[PositiveFloat] = Field(min_length=1, description="bandwidths of the ESO [rad/s]")
    lqe: list[PositiveFloat] = Field(min_length=1, description="noise ratios of the LQE")


class Flow(Strict):
    """Lattice-Boltzmann flow past an obstacle, and the window and path of the vehicle in it."""

    nx: PositiveInt
    ny: PositiveInt
    shape: Literal["cylinder", "square"]
    diameter: PositiveFloat
    reynolds: PositiveFloat
    speed: PositiveFloat
    warm_up: NonNegativeInt = Field(description="lattice steps before the first frame")
    frames: PositiveInt
    every: PositiveInt = Field(description="lattice steps between frames")
    window: list[NonNegativeInt] = Field(min_length=4, max_length=4)
    path: list[list[float]] = Field(min_length=2, max_length=2, description="start and end")


class VehicleTraining(Strict):
    """The neural observers of the vehicles."""

    hidden: list[PositiveInt]
    base_eps: PositiveFloat
    M_w: PositiveFloat
    pretrain: dict[str, PositiveInt]
    finetune: dict[str, PositiveInt]


class VehicleGrid(Strict):
    """Values of each method's parameters from which the tuning seeds choose."""

    bandwidth: list[PositiveFloat]
    ki: list[NonNegativeFloat]
    lander_ki: list[NonNegativeFloat]
    omega_0: list[PositiveFloat]
    lqe: list[list[PositiveFloat]]
    level: list[PositiveFloat]
    rho: list[PositiveFloat]
    eps: list[PositiveFloat]


class Vehicles(Strict):
    """Tracking by the quadrotor and the underwater vehicle."""

    tuning_seeds: list[NonNegativeInt] = Field(min_length=1)
    lander_seeds: dict[str, list[NonNegativeInt]] = Field(description="range of seeds per vehicle")
    judging_seeds: list[NonNegativeInt] = Field(min_length=1)
    seconds: dict[str, PositiveFloat] = Field(description="length of a mission")
    network_seeds: list[NonNegativeInt] = Field(min_length=1)
    training: VehicleTraining
    quadrotor: VehicleGrid
    auv: VehicleGrid


class Settings(Strict):
    """What config/papers/lyapunov_observer.yaml may say at one scale."""

    datasets: list[str] = Field(min_length=1)
    seeds: list[NonNegativeInt] = Field(min_length=1)
    nets: dict[str, list[PositiveInt]] = Field(description="hidden widths of each network")
    main_net: str = Field(description="the network that the claims speak of")
    main_system: dict[str, str] = Field(description="the headline system of each dataset")
    other_systems: dict[str, list[str]] = Field(description="systems that test generality")
    other_seeds: list[NonNegativeInt] = Field(description="seeds of the other systems")
    eps: PositiveFloat = Field(description="time-scale of the observer")
    rho: NonNegativeFloat = Field(description="decay rate of V in the fast time")
    M_w: PositiveFloat = Field(description="bound on the rate of the lumped disturbance")
    pretrain: Pretrain
    finetune: Finetune
    sdp_seconds: dict[str, PositiveFloat] = Field(description="the direct SDP is cut off here")
    sdp_runs: dict[str, PositiveInt] = Field(description="seeds that each solver is run on")
    estimation: Estimation
    theory: Theory
    rate_state: dict[str, NonNegativeInt] = Field(description="the state of the plane's plant")
    robustness: Robustness
    flow: Flow
    vehicles: Vehicles

    @model_validator(mode="after")
    def _known(self) -> "Settings":
        for name, net in (("main_net", self.main_net), ("plane_net", self.theory.plane_net)):
            if net not in self.nets:
                raise ValueError(f"{name} is {net!r}; nets has {sorted(self.nets)}")
        for name in ("main_system", "other_systems", "rate_state", "sdp_seconds"):
            if missing := set(self.datasets) - set(getattr(self, name)):
                raise ValueError(f"{name} lacks {sorted(missing)}")
        return self
