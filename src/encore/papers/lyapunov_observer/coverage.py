"""Coverage of a ring of error states in the plane by certified balls: the setting of the theorem."""

import numpy as np
import torch
from scipy.spatial import cKDTree

from encore.papers.lyapunov_observer.lyapunov import coverage_bound, local_radius
from encore.papers.lyapunov_observer.network import ObserverNet
from encore.papers.lyapunov_observer.observer import NeuralObserver
from encore.papers.lyapunov_observer.pretrain import pretrain_pointwise

MOST_CELLS = 3_000_000
MOST_TRIES = 20
CHUNK = 50_000  # cells whose radii are computed at once


class Ring:
    """Error states of a two-dimensional error system with r_min <= |eta| <= r_max."""

    def __init__(self, r_min: float, r_max: float):
        if not 0 < r_min < r_max:
            raise ValueError(f"r_min={r_min}, r_max={r_max}; expected 0 < r_min < r_max")
        self.r_min, self.r_max = r_min, r_max

    @property
    def area(self) -> float:
        """Area of the ring."""
        return float(np.pi * (self.r_max**2 - self.r_min**2))

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Points (count, 2), uniform by area."""
        radius = np.sqrt(rng.uniform(self.r_min**2, self.r_max**2, size=count))
        angle = rng.uniform(0, 2 * np.pi, size=count)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)

    def cells(self, diameter: float) -> tuple[np.ndarray, np.ndarray]:
        """Polar cells of at most ``diameter`` that tile the ring: centres (N, 2), areas (N,).

        Every point of a cell is within diameter/2 + (diameter/2)^2/r_min of its centre; callers add
        the whole diameter where they need a safe distance.
        """
        if not diameter > 0:
            raise ValueError(f"diameter must be positive, got {diameter}: no radius is certified")
        side = diameter / 2**0.5
        rings = int(np.ceil((self.r_max - self.r_min) / side))
        edges = np.linspace(self.r_min, self.r_max, rings + 1)
        sectors = np.ceil(2 * np.pi * edges[1:] / side).astype(int)
        if sectors.sum() > MOST_CELLS:
            raise ValueError(
                f"diameter={diameter} needs {sectors.sum()} cells, more than {MOST_CELLS}"
            )
        middle, index = (
            np.repeat((edges[1:] + edges[:-1]) / 2, sectors),
            np.repeat(sectors, sectors),
        )
        starts = np.repeat(np.cumsum(sectors) - sectors, sectors)
        angle = 2 * np.pi * (np.arange(len(index)) - starts + 0.5) / index
        areas = np.repeat(np.pi * np.diff(edges**2) / sectors, sectors)
        return np.stack([middle * np.cos(angle), middle * np.sin(angle)], axis=1), areas

    def cover(self, radius: float) -> tuple[int, float]:
        """(N_cov, q) of the theorem: cells of diameter ``radius``, least probability of one."""
        _, areas = self.cells(radius)
        return len(areas), float(areas.min() / self.area)


def certified_floor(obs, ring: Ring, rho: float, M_w: float, pitch: float) -> float:
    """Lower bound of the local radius on the whole ring: cells of diameter ``pitch``, Lipschitz slack."""
    centres, _ = ring.cells(pitch)
    return min(
        float(local_radius(obs, part, rho, M_w, slack=pitch).min())
        for part in torch.from_numpy(centres).split(CHUNK)
    )


def covered(ring: Ring, points: np.ndarray, radii, counts, pitch: float) -> np.ndarray:
    """Share of the ring surely covered by the balls of the first T points, for each T of ``counts``.

    points (T_max, 2), radii a number or (T_max,). The ring is tiled by cells of diameter ``pitch``; a
    cell counts if its centre lies deeper than ``pitch`` in a ball, so that 1.0 means: all covered.
    Shares weigh cells by area.
    """
    centres, areas = ring.cells(pitch)
    radii = np.broadcast_to(np.asarray(radii, dtype=float), len(points))
    open_cells, shares, start = np.arange(len(centres)), [], 0
    for count in sorted(counts):
        depth = radii[start:count] - pitch
        useful = depth > 0
        if len(open_cells) and useful.any():
            tree = cKDTree(centres[open_cells])
            balls = points[start:count][useful]
            hits = tree.query_ball_point(balls, depth[useful], return_sorted=False)
            hit = np.zeros(len(open_cells), dtype=bool)
            hit[np.concatenate([np.asarray(h, dtype=int) for h in hits])] = True
            open_cells = open_cells[~hit]
        shares.append(1.0 if not len(open_cells) else 1 - areas[open_cells].sum() / areas.sum())
        start = count
    return np.array(shares)


def observer_of_ring(
    plant, hidden, eps: float, ring: Ring, rho: float, M_w: float, training, pitch, seed: int
):
    """An observer of a one-state plant after stage 1 that fulfils the theorem's premise on the ring.

    The premise is decrease everywhere on the domain; stage 1 misses it from some initial weights (a
    gain of the wrong sign), so that the seeds ``seed``, ``seed + 1`` ... are tried in turn.

    Returns:
        The observer, its certified least radius on the ring, and how many seeds were tried.

    Raises:
        RuntimeError: none of ``MOST_TRIES`` seeds fulfils it.
    """
    for tried in range(MOST_TRIES):
        net = ObserverNet(1, 1, 1, hidden, seed=seed + tried)
        obs = NeuralObserver(plant, net, eps)
        pretrain_pointwise(obs, rho, M_w, seed=seed + tried, **training)
        if (floor := certified_floor(obs, ring, rho, M_w, pitch)) > 0:
            return obs, floor, tried + 1
    raise RuntimeError(
        f"stage 1 fulfils the premise for none of the seeds {seed} to {seed + tried}"
    )


def coverage_experiment(
    obs, ring: Ring, floor: float, counts, rho: float, M_w: float, options, seed: int
) -> dict:
    """Sample states of the ring many times and see how much of it their certified balls cover.

    Args:
        obs: pre-trained observer with a two-dimensional error state.
        ring: the domain.
        floor: its certified least radius there, of ``observer_of_ring``.
        counts: numbers of samples T, ascending, (n,).
        rho, M_w: as in ``local_radius``.
        options: ``repeats``, and ``own``, how many samples of each draw get their own radius (the
            others cover nothing).
        seed: of the samples.

    Returns:
        ``n_cov`` and ``bound`` (n,) of the theorem; ``least_radius`` and ``own_radius``, covered shares (repeats, n); ``samples`` (T, 2) and
        ``radii`` (T,) of the first draw.
    """
    n_cov, q = ring.cover(floor)
    rng, shares, first = np.random.default_rng(seed), {"least_radius": [], "own_radius": []}, None
    for _ in range(options["repeats"]):
        samples = ring.sample(counts[-1], rng)
        own = np.zeros(len(samples))
        head = torch.from_numpy(samples[: options["own"]])
        own[: options["own"]] = local_radius(obs, head, rho, M_w).numpy()
        first = (samples, own) if first is None else first
        for method, radius in (("least_radius", floor), ("own_radius", own)):
            shares[method].append(covered(ring, samples, radius, counts, floor / 4))
    found = {method: np.array(values) for method, values in shares.items()}
    found |= {"samples": first[0], "radii": first[1]}
    return found | {"n_cov": np.array(n_cov), "bound": coverage_bound(n_cov, q, counts)}
