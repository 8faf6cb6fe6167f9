"""Every method on one vehicle with the same care: a grid of gains each, tuned on seeds of their own.

A method's grid is its feedback bandwidths times as many values of what else it can be tuned by: integral
gains (PID), integral gains with and without the input as a feature (Neural Lander), poles (ESO), noise
intensities (LQE), levels (super-twisting), and decay rate rho times eps (neural observer, of which only
certified ones may fly).
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from encore.papers.lyapunov_observer.baselines import (
    ESO,
    LuenbergerLQE,
    Measurement,
    NeuralLander,
    SuperTwistingObserver,
)
from encore.papers.lyapunov_observer.linear_systems import UncertainLTI
from encore.papers.lyapunov_observer.lmi import finetune_lmi, verify_certificate
from encore.papers.lyapunov_observer.network import ObserverNet
from encore.papers.lyapunov_observer.observer import NeuralObserver
from encore.papers.lyapunov_observer.pretrain import pretrain_pointwise
from encore.papers.lyapunov_observer.simulate import ArrayObserver
from encore.papers.lyapunov_observer.tracking import Candidate, Flight, Mission, select, track

LANDER_POINTS = 40_000


def train_observers(
    system: UncertainLTI,
    seed: int,
    rho: float,
    eps: Sequence[float],
    *,
    hidden: Sequence[int],
    base_eps: float = 0.1,
    M_w: float = 2.0,
    pretrain: Mapping | None = None,
    finetune: Mapping | None = None,
) -> dict[float, NeuralObserver]:
    """Certified two-stage observers of ``system``, by eps; those without a certificate are left out.

    Both stages run at ``base_eps``; from there stage 2 continues at every ``eps``, often in no step at
    all, so that eps is tuned at little cost (our choice). Every certificate is verified for the final
    weights.
    """
    net = ObserverNet(system.n_y, system.n_x, system.n_d, hidden, seed=seed)
    first = NeuralObserver(system, net, base_eps)
    pretrain_pointwise(first, rho, M_w, seed=seed, **(pretrain or {}))
    finetune_lmi(first, rho, **(finetune or {}))
    certified = {}
    for value in eps:
        copy = NeuralObserver.from_tensors({k: v.clone() for k, v in first.tensors().items()})
        # P and multipliers scaled alike scale H; the factor keeps P away from its floor of 0.01 I
        layers = [1.01 * layer for layer in copy.multipliers]
        observer = NeuralObserver(system, copy.net, value, 1.01 * copy.P, layers)
        finetune_lmi(observer, rho, **(finetune or {}))
        if verify_certificate(observer, rho, M_w).valid:
            certified[float(value)] = observer
    return certified


def fit_landers(system, make_vehicle, mission: Mission, seed: int = 0) -> list[NeuralLander]:
    """Residuals ``f(y, u)`` and ``f(y)`` fitted on 40,000 points of recorded flights under a PD loop."""
    flight = track(
        make_vehicle, [Candidate("pd", Measurement(system), 4.0, 8.0)], mission, record=True
    )
    columns = [
        a.reshape(-1, a.shape[-1]) for a in (flight.output, flight.effective, flight.disturbance)
    ]
    order = np.random.default_rng(seed).permutation(len(columns[0]))[:LANDER_POINTS]
    points = [column[order] for column in columns]
    return [NeuralLander.fit(system, *points, sees_input=flag, seed=seed) for flag in (True, False)]


def candidates(
    system,
    grid: Mapping[str, Sequence],
    neural: Mapping[tuple[int, float, float], NeuralObserver],
    landers: Sequence[NeuralLander],
    noise: np.ndarray,
) -> list[Candidate]:
    """The whole grid of every method.

    ``grid`` has ``bandwidth``, ``ki``, ``lander_ki``, ``omega_0``, ``lqe`` (pairs of disturbance and
    state noise) and ``level``; ``neural`` maps ``(seed, rho, eps)`` to observers, each seed's network
    being tuned by itself; ``noise`` (n_y,) is the intensity of the measurement noise, which the LQE
    knows.
    """
    plain = Measurement(system)
    kinds = [("pid", 0, plain, ki, ki) for ki in grid["ki"]]
    kinds += [("lander", 0, f, ki, ki) for f, ki in itertools.product(landers, grid["lander_ki"])]
    kinds += [("eso", 0, ESO(system, omega), 0.0, omega) for omega in grid["omega_0"]]
    kinds += [("lqe", 0, LuenbergerLQE(system, q, s, noise), 0.0, q) for q, s in grid["lqe"]]
    kinds += [("twisting", 0, SuperTwistingObserver(system, v), 0.0, v) for v in grid["level"]]
    kinds += [
        ("neural", seed, ArrayObserver(net), 0.0, eps) for (seed, _, eps), net in neural.items()
    ]
    return [
        Candidate(method, observer, bandwidth, ki, parameter, network)
        for method, network, observer, ki, parameter in kinds
        for bandwidth in grid["bandwidth"]
    ]


def tune(make_vehicle, entries: Sequence[Candidate], mission: Mission) -> list[Candidate]:
    """The candidate of each method (and network) with the least mean RMSE over the tuning mission."""
    score = track(make_vehicle, entries, mission).rmse.mean(axis=1)
    return [entries[i] for i in select(entries, score)]


def at_edge(entries: Sequence[Candidate], chosen: Candidate) -> bool:
    """Whether the chosen bandwidth or parameter is the largest of its grid: the grid was short."""
    same = [entry for entry in entries if entry.method == chosen.method]
    return any(
        getattr(chosen, name) == max(getattr(entry, name) for entry in same)
        for name in ("bandwidth", "parameter")
    )


@dataclass(frozen=True)
class Study:
    """Outcome of ``study``: the ``chosen`` candidates (one per method, the neural one per network),
    whether each lies at the ``edge`` of its grid, the ``flight`` on the judging ``mission`` (rows in the
    order of ``chosen``), and how many of the grid's networks are certified, by seed.
    """

    chosen: list[Candidate]
    edge: list[bool]
    flight: Flight
    mission: Mission
    certified: dict[int, int]
    networks: int


def study(
    system: UncertainLTI,
    make_vehicle,
    missions,
    plan: Mapping,
    noise: Sequence[float],
) -> Study:
    """Tune every method, then compare the winners on missions that no tuning saw.

    ``make_vehicle(mass)`` gives the ``make_vehicle`` of ``track``, ``missions(seeds)`` the masses (B,)
    and the mission. ``plan`` holds, for the vehicle ``system.name``, the grid (under that name) and the
    range of ``lander_seeds``; for all vehicles ``tuning_seeds``, ``judging_seeds``, ``network_seeds`` and
    the ``training`` passed to ``train_observers``. A network is trained for every network seed and every
    rho and eps of the grid; ``noise`` (n_y,) is the standard deviation of the output. Raises
    ``ValueError`` when seeds of tuning and judging missions overlap, or a network seed has no
    certificate at all.
    """
    grid, training = plan[system.name], plan["training"]
    lander_seeds = range(*plan["lander_seeds"][system.name])
    tuning_seeds, judging_seeds = plan["tuning_seeds"], plan["judging_seeds"]
    network_seeds = plan["network_seeds"]
    if overlap := {*tuning_seeds, *lander_seeds} & {*judging_seeds}:
        raise ValueError(f"judging_seeds holds the tuning seeds {sorted(overlap)}")
    neural = {
        (seed, rho, eps): observer
        for seed, rho in itertools.product(network_seeds, grid["rho"])
        for eps, observer in train_observers(system, seed, rho, grid["eps"], **training).items()
    }
    certified = {seed: sum(key[0] == seed for key in neural) for seed in network_seeds}
    if missing := [seed for seed, count in certified.items() if count == 0]:
        raise ValueError(f"no network of the seeds {missing} is certified, rho {grid['rho']}")
    mass, mission = missions(lander_seeds)
    landers = fit_landers(system, make_vehicle(mass), mission) if grid["lander_ki"] else []
    mass, mission = missions(tuning_seeds)
    entries = candidates(system, grid, neural, landers, np.square(noise) * mission.dt)
    chosen = tune(make_vehicle(mass), entries, mission)
    mass, mission = missions(judging_seeds)
    flight = track(make_vehicle(mass), chosen, mission, record=True)
    edge = [at_edge(entries, candidate) for candidate in chosen]
    return Study(chosen, edge, flight, mission, certified, len(grid["rho"]) * len(grid["eps"]))


def tracking_rows(result: Study, phases: Sequence[str], seeds: Sequence[int]) -> list[dict]:
    """Rows of metrics: errors in mm and m/s^2 per method, network, phase and seed.

    Phases are consecutive blocks of trials. Keywords of ``Table.add``, the data set missing.
    """
    rows = []
    for k, candidate in enumerate(result.chosen):
        for p, phase in enumerate(phases):
            block = slice(p * len(seeds), (p + 1) * len(seeds))
            error, estimate = result.flight.rmse[k, block], result.flight.estimate_rmse[k, block]
            common = {
                "method": candidate.method, "network": candidate.network, "seed": list(seeds),
                "phase": phase, "better": "lower",
                "reason": ["" if np.isfinite(value) else "the vehicle was lost" for value in error],
            }  # fmt: skip
            rows.append(common | {"metric": "tracking_rmse", "value": 1e3 * error, "unit": "mm"})
            rows.append(common | {"metric": "disturbance_rmse", "value": estimate, "unit": "m/s^2"})
    return rows


def gain_rows(result: Study) -> list[dict]:
    """Rows of metrics: what the tuning chose, and the share of certified networks by seed."""
    rows = []
    for candidate, edge in zip(result.chosen, result.edge, strict=True):
        for metric, value in (
            ("bandwidth", candidate.bandwidth),
            ("parameter", candidate.parameter),
            ("grid_edge", float(edge)),
        ):
            common = {"method": candidate.method, "network": candidate.network, "seed": 0}
            rows.append(common | {"metric": metric, "value": value})
    for seed, count in result.certified.items():
        share = count / result.networks
        common = {"method": "neural", "network": seed, "seed": seed}
        rows.append(common | {"metric": "certified_share", "value": share})
    return rows
