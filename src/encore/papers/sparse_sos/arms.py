"""A planar arm of unit links projected onto the poses that keep its joints off discs.

Joints p_1 .. p_N in the plane, p_0 = 0, |p_{i+1} - p_i| = 1, |p_i - c| >= r for every disc. The
nearest pose to a proposal is a polynomial problem whose order-2 relaxation couples consecutive
joints only; where its moment blocks have rank 1 the first moments are that pose. Inside the program
lengths are measured in units of 8 links, so that moments of degree 4 stay below about 1.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy import optimize

from encore.papers.sparse_sos.polynomial import SparsePolynomial
from encore.papers.sparse_sos.program import SOSProgram

Disc = tuple[float, float, float]
UNIT = 8.0  # links


def arm_projection_program(links: int, obstacles: Sequence[Disc] = ()) -> SOSProgram:
    """Structure of the projection; coefficients from ``projection_coeffs``.

    Args:
        links: N >= 2.
        obstacles: (x, y, radius) of each disc that no joint may enter.

    Raises:
        ValueError: fewer than two links, or a disc that holds the base.
    """
    if links < 2:
        raise ValueError(f"links={links}; expected at least 2")
    for disc in obstacles:
        if not disc[2] > 0:
            raise ValueError(f"obstacle {disc} has no positive radius")
    names = SparsePolynomial.variables(2 * links)
    joints = [(names[2 * i], names[2 * i + 1]) for i in range(links)]
    link = UNIT**-2
    lengths = [joints[0][0] ** 2 + joints[0][1] ** 2 - link]
    for (x, y), (u, v) in pairwise(joints):
        lengths.append((u - x) ** 2 + (v - y) ** 2 - link)
    reach = [(i + 1) ** 2 * link - x**2 - y**2 for i, (x, y) in enumerate(joints) if i]
    free = [
        (x - a / UNIT) ** 2 + (y - b / UNIT) ** 2 - r**2 * link
        for x, y in joints
        for a, b, r in obstacles
    ]
    return SOSProgram.build(
        projection_support(links), inequalities=[*reach, *free], equalities=lengths, degree=4
    )


def projection_support(links: int) -> np.ndarray:
    """Exponents of sum |p_i - proposal_i|^2: the constant, every coordinate, every square."""
    eye = np.eye(2 * links, dtype=int)
    return np.concatenate([np.zeros((1, 2 * links), int), eye, 2 * eye])


def projection_coeffs(pose: np.ndarray) -> np.ndarray:
    """Coefficients (4N + 1,) of the squared distance (in links) to a pose (N, 2)."""
    flat = np.asarray(pose, float).ravel()
    return np.concatenate([[flat @ flat], -2 * UNIT * flat, np.full(len(flat), UNIT**2)])


def first_moments(program: SOSProgram) -> np.ndarray:
    """Positions in y of the coordinates, (2N,); times ``UNIT`` they are the joints in links."""
    rows = {tuple(row): k for k, row in enumerate(program.monomials.tolist())}
    eye = np.eye(program.monomials.shape[1], dtype=int).tolist()
    return np.array([rows[tuple(row)] for row in eye])


def joints_of(angles: np.ndarray) -> np.ndarray:
    """Joints (..., N, 2) of link angles (..., N)."""
    return np.cumsum(np.stack([np.cos(angles), np.sin(angles)], axis=-1), axis=-2)


def nearest_pose(
    pose: np.ndarray, obstacles: Sequence[Disc], searches: int, seed: int
) -> tuple[float, np.ndarray]:
    """Least squared distance over feasible arms by local searches in the angles, and its joints."""
    rng = np.random.default_rng(seed)
    discs = np.array(obstacles).reshape(-1, 3)
    best, joints = np.inf, np.zeros_like(pose)

    def cost(angles: np.ndarray) -> float:
        return float(((joints_of(angles) - pose) ** 2).sum())

    def clearance(angles: np.ndarray) -> np.ndarray:
        gaps = joints_of(angles)[:, None, :] - discs[:, :2]
        return ((gaps**2).sum(-1) - discs[:, 2] ** 2).ravel()

    steps = np.diff(np.vstack([np.zeros(2), pose]), axis=0)
    start = np.arctan2(steps[:, 1], steps[:, 0])
    for k in range(searches):
        guess = start + (0.7 * rng.normal(size=len(start)) if k else 0.0)
        rules = {"type": "ineq", "fun": clearance}
        found = optimize.minimize(
            cost, guess, method="SLSQP", constraints=[rules] if len(discs) else []
        )
        if found.fun < best and (not len(discs) or clearance(found.x).min() > -1e-9):
            best, joints = float(found.fun), joints_of(found.x)
    return best, joints
