"""Solve a program to the point of its central path where Q_k = mu M_k(y)^-1.

Clarabel brings the iterate near; primal-dual steps (HKM direction) and at last Newton steps on
p . y - mu sum_k logdet M_k(y) centre it to machine accuracy. Without Clarabel the same primal-dual
steps follow the central path from the start.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from encore.papers.sparse_sos.cone import BoundCone, Factor, Grams
from encore.papers.sparse_sos.conic import ClarabelForm, Point
from encore.papers.sparse_sos.errors import InfeasibleSOSError
from encore.papers.sparse_sos.program import Program

CENTRED = 1e-8  # |Q M / mu - I| at which the point counts as centred
MAX_STEPS = 100


@dataclass
class Solution:
    """The mu-centred point of one program.

    Attributes:
        bound: p . y - mu sum_k s_k, the value of the Gram side: a lower bound up to rounding.
        y: (N,) moments.
        grams: Q_k = mu M_k(y)^-1, stacked by shape.
        inverses: M_k(y)^-1, stacked by shape.
        mu: the barrier parameter.
        q: (N,) normaliser.
        cone: the blocks with their data.
        steps: primal-dual steps, after Clarabel's if it was used.
        factor: of the Hessian at the last but one point, divided by ``factor_scale``.
    """

    bound: float
    y: np.ndarray
    grams: Grams
    inverses: Grams
    mu: float
    q: np.ndarray
    cone: BoundCone
    steps: int
    factor: Factor
    factor_scale: float

    def solver(self, reuse: bool = True) -> Callable[[np.ndarray], np.ndarray]:
        """A function that solves H x = right (N,), H = mu sum_k A_k' (M_k^-1 x M_k^-1) A_k.

        Args:
            reuse: take the factor of the last primal-dual step, which differs from that of H by about
                the square root of the centring tolerance; False assembles and factors H.
        """
        factor, scale = self.factor, self.factor_scale
        if not reuse:
            factor, scale = Factor(self.cone.cone, self.hessian()), 1.0
        return lambda right: refined(
            lambda r: factor.apply(r) / scale,
            lambda x: self.cone.product(self.inverses, self.grams, x),
            right,
        )

    def hessian(self) -> sparse.csc_matrix:
        """H, permuted by ``cone.cone.permutation``."""
        return self.cone.hessian(self.inverses, self.grams)


def refined(
    apply: Callable[[np.ndarray], np.ndarray],
    product: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
) -> np.ndarray:
    """Iterative refinement until the residual stops falling or is 1e-13 of the right side."""
    x = apply(right)
    residual = right - product(x)
    size, best = np.abs(residual).max(), 1e-13 * np.abs(right).max()
    for _ in range(6):
        if size <= best:
            break
        trial = x + apply(residual)
        residual = right - product(trial)
        if not np.abs(residual).max() < size / 2:
            break
        x, size = trial, np.abs(residual).max()
    return x


def _roots(stack: Grams) -> Grams:
    """L^-1 for S = L L'."""
    return [np.linalg.inv(np.linalg.cholesky(part)) for part in stack]


def _inverse(roots: Grams) -> Grams:
    return [root.swapaxes(-1, -2) @ root for root in roots]


def _symmetric(part: np.ndarray) -> np.ndarray:
    return (part + part.swapaxes(-1, -2)) / 2


def _positive(stack: Grams) -> bool:
    try:
        for part in stack:
            np.linalg.cholesky(part)
    except np.linalg.LinAlgError:
        return False
    return True


def _step_length(stack: Grams, change: Grams, damping: float = 0.95) -> float:
    """Largest step up to 1 (times damping) that keeps every block positive definite."""
    if _positive([part + delta for part, delta in zip(stack, change, strict=True)]):
        return 1.0
    least = 0.0
    for part, delta in zip(stack, change, strict=True):
        root = np.linalg.inv(np.linalg.cholesky(part))
        least = min(least, np.linalg.eigvalsh(root @ delta @ root.swapaxes(-1, -2)).min())
    return damping * min(1.0, -1.0 / least)


def _move(
    point: Point, p: np.ndarray, q: np.ndarray, cone: BoundCone, target: float
) -> tuple[Factor, float]:
    """One primal-dual step towards Q M = target I; returns its factor and the shorter length.

    Residuals are kept small numbers (never differences of large ones), which is what lets the point be
    centred to 1e-8 although the Hessian's condition grows like 1/mu.
    """
    roots = _roots(point.slacks)
    inverses = _inverse(roots)
    gaps = [m - s for m, s in zip(cone.matrices(point.y), point.slacks, strict=True)]
    pull = [
        r.swapaxes(-1, -2) @ (target * np.eye(r.shape[-1]) - e) @ r - _symmetric(w @ gap @ g)
        for r, e, w, gap, g in zip(roots, _scaled(point), inverses, gaps, point.grams, strict=True)
    ]
    residual = p - point.bound * q - cone.adjoint(point.grams)
    factor = Factor(cone.cone, cone.hessian(inverses, point.grams))
    u, v = (
        refined(factor.apply, lambda x: cone.product(inverses, point.grams, x), right)
        for right in (cone.adjoint(pull) - residual, q)
    )
    d_bound = (1.0 - q @ point.y - q @ u) / (q @ v)
    d_y = u + d_bound * v
    moved = cone.matrices(d_y)
    d_slacks = [m + gap for m, gap in zip(moved, gaps, strict=True)]
    d_grams = [
        pulled - _symmetric(w @ m @ g)
        for pulled, w, m, g in zip(pull, inverses, moved, point.grams, strict=True)
    ]
    primal, dual = _step_length(point.slacks, d_slacks), _step_length(point.grams, d_grams)
    point.y = point.y + primal * d_y
    point.slacks = [s + primal * d for s, d in zip(point.slacks, d_slacks, strict=True)]
    point.grams = [_symmetric(g + dual * d) for g, d in zip(point.grams, d_grams, strict=True)]
    point.bound += dual * d_bound
    return factor, min(primal, dual)


def _complementarity(point: Point, order: int) -> float:
    return sum(float((s * g).sum()) for s, g in zip(point.slacks, point.grams, strict=True)) / order


def _snap(point: Point, q: np.ndarray, cone: BoundCone) -> bool:
    """Put S_k = M_k(y) once that hardly changes anything; returns whether it holds."""
    blocks = cone.matrices(point.y)
    off = max(float(np.abs(m - s).max()) for m, s in zip(blocks, point.slacks, strict=True))
    scale = max(float(np.abs(s).max()) for s in point.slacks)
    if off > 1e-6 * scale or abs(q @ point.y - 1.0) > 1e-10 or not _positive(blocks):
        return False
    point.slacks = blocks
    return True


def _scaled(point: Point) -> Grams:
    """L' Q_k L with S_k = L L': far more accurate near the boundary than Q_k S_k."""
    roots = [np.linalg.cholesky(s) for s in point.slacks]
    return [_symmetric(r.swapaxes(-1, -2) @ g @ r) for r, g in zip(roots, point.grams, strict=True)]


def _deviation(point: Point, mu: float) -> float:
    """Largest Frobenius norm of L' Q_k L / mu - I."""
    return max(
        float(np.linalg.norm(e / mu - np.eye(e.shape[-1]), axis=(-2, -1)).max())
        for e in _scaled(point)
    )


def _start(program: Program, q: np.ndarray) -> Point:
    slacks = [np.stack([10.0 * np.eye(g.size)] * len(g.members)) for g in program.cone.groups]
    return Point(q / (q @ q), slacks, [s.copy() for s in slacks], 0.0)


def _follow(
    point: Point, p: np.ndarray, q: np.ndarray, cone: BoundCone, mu: float
) -> tuple[int | None, Factor | None]:
    """Primal-dual steps to the mu-centre; their number (None: not reached) and the last factor."""
    factor, last, length, short = None, np.inf, 1.0, 0
    for step in range(MAX_STEPS):
        feasible = _snap(point, q, cone)
        current = _complementarity(point, cone.cone.order)
        residual = np.abs(p - point.bound * q - cone.adjoint(point.grams)).max()
        if feasible and residual < 1e-10 * max(1.0, abs(point.bound)):
            deviation = _deviation(point, mu)
            if deviation < CENTRED or (last < 1e-3 and deviation > 0.5 * last):
                return step, factor
            last = deviation
        if not np.isfinite(current) or short > 5 or np.abs(point.y).max() > 1e13:
            break
        # after a short step the point is centred where it is before the path is followed on
        target = mu if current < 5 * mu else max(mu, (0.2 if length > 0.5 else 1.0) * current)
        factor, length = _move(point, p, q, cone, target)
        short = short + 1 if length < 0.05 else 0
    return None, None


def solve(
    program: Program,
    p: np.ndarray,
    mu: float,
    *,
    solver: str = "clarabel",
    q: np.ndarray | None = None,
    data: np.ndarray | None = None,
    form: ClarabelForm | None = None,
) -> Solution:
    """The mu-centred solution for an objective p (N,) on the moments.

    Args:
        program: the structure.
        mu: barrier parameter, in units of p.
        solver: "clarabel" (with own path following where it fails) or "barrier" (own from the start).
        q: (N,) normaliser in place of the program's.
        data: (D,) coefficients of the inequalities in place of the program's.
        form: Clarabel's set-up of this program, if there is one to reuse.

    Raises:
        InfeasibleSOSError: there is no centred point.
    """
    q = program.normaliser if q is None else q
    cone = program.cone.at(program.data if data is None else data)
    shift = float(p @ q) / float(q @ q)  # p and p - shift * q have the same centre
    p = p - shift * q
    scale = float(np.abs(p).max()) or 1.0
    p, mu = p / scale, mu / scale
    steps = None
    if solver == "clarabel":
        form = form or ClarabelForm(cone, q)
        found = form.solve(p, mu * cone.cone.order)
        if "Infeasible" in str(found.status):
            raise InfeasibleSOSError(str(found.status))
        if str(found.status) == "Solved":
            point = form.point(found)
            steps, factor = _attempt(point, p, q, cone, mu)
    if steps is None:
        point = _start(program, q)
        steps, factor = _attempt(point, p, q, cone, mu)
    if steps is None:
        raise InfeasibleSOSError(
            "the central path was not reached (no strictly feasible moments, or Gram matrices)"
        )
    inverses = _inverse(_roots(point.slacks))
    if factor is None:
        factor = Factor(cone.cone, cone.hessian(inverses, point.grams))
    bound = scale * (float(p @ point.y) - mu * cone.cone.order) + shift
    grams = [g * scale for g in point.grams]
    return Solution(bound, point.y, grams, inverses, mu * scale, q, cone, steps, factor, scale)


def _attempt(point: Point, *rest) -> tuple[int | None, Factor | None]:
    """``_follow``, or None where the numbers break down."""
    try:
        return _follow(point, *rest)
    except (np.linalg.LinAlgError, RuntimeError):
        return None, None
