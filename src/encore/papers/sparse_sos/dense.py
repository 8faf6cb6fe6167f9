"""Dense implicit differentiation of the same centred point, for comparison.

``DenseKKT`` factors the whole linearised system of moments, Gram entries and bound by LAPACK's LU,
``DenseNewton`` the Newton matrix alone by LAPACK's Cholesky. What does not depend on numbers (index
lists, the constant part of the matrix) is laid out once, so that a backward pays for filling in
numbers, factoring and solving only.
"""

import numpy as np
from scipy import linalg

from encore.papers.sparse_sos.cone import BoundCone, Grams
from encore.papers.sparse_sos.implicit import Gradient, adjoint_right, assemble
from encore.papers.sparse_sos.solver import Solution


class DenseKKT:
    """LU of [[0, A', q], [A, M x M / mu, 0], [q', 0, 0]] with every entry of every block an unknown.

    Args:
        cone: blocks with their data.
        q: normaliser (N,).
    """

    def __init__(self, cone: BoundCone, q: np.ndarray) -> None:
        self.cone = cone
        self.n = cone.cone.num_variables
        self.triangles, start = [], self.n
        for group in cone.cone.groups:
            row, col = np.tril_indices(group.size)
            scale = np.where(row == col, 1.0, np.sqrt(2.0))
            starts = start + len(row) * np.arange(len(group.members))
            start += len(row) * len(group.members)
            self.triangles.append((row, col, scale, starts))
        self.template = np.zeros((start + 1, start + 1), order="F")
        self.template[-1, : self.n] = self.template[: self.n, -1] = q
        for group, maps, (row, col, scale, starts) in self._groups():
            entries = maps[:, :, row * group.size + col] * scale
            for place, first in enumerate(starts):
                rows = np.arange(first, first + len(row))
                part = entries[place % len(entries)]
                self.template[np.ix_(group.variables[place], rows)] = part
                self.template[np.ix_(rows, group.variables[place])] = part.T

    def matches(self, solution: Solution) -> bool:
        """Whether the constant part is that of a solution."""
        same = self.cone is solution.cone
        return same and bool((self.template[-1, : self.n] == solution.q).all())

    def _groups(self):
        return zip(self.cone.cone.groups, self.cone.maps, self.triangles, strict=True)

    def matrix(self, solution: Solution) -> np.ndarray:
        """The KKT matrix at a solution."""
        result = self.template.copy(order="F")
        for (_, _, (row, col, scale, starts)), w in zip(
            self._groups(), solution.inverses, strict=True
        ):
            m = np.linalg.inv(w)
            block = m[:, row[:, None], row] * m[:, col[:, None], col]
            block += m[:, row[:, None], col] * m[:, col[:, None], row]
            block *= np.outer(scale, scale) / (2 * solution.mu)
            for place, first in enumerate(starts):
                result[first : first + len(row), first : first + len(row)] = block[place]
        return result

    def gradient(
        self, solution: Solution, bound: float, moments: np.ndarray, grams: Grams
    ) -> Gradient:
        """The same as ``certificate_gradient``."""
        right = np.zeros(len(self.template))
        right[: self.n], right[-1] = moments, bound
        for (row, col, scale, starts), g in zip(self.triangles, grams, strict=True):
            right[starts[0] : starts[-1] + len(row)] = (g[:, row, col] * scale).ravel()
        factor = linalg.lu_factor(self.matrix(solution), overwrite_a=True, check_finite=False)
        z = linalg.lu_solve(factor, right, check_finite=False)
        return assemble(solution, -z[: self.n], z[-1], grams)


class DenseNewton:
    """Cholesky of the Newton matrix H, local blocks scattered into a dense (N, N) array.

    Args:
        cone: blocks with their data.
    """

    def __init__(self, cone: BoundCone) -> None:
        n = cone.cone.num_variables
        places = [g.variables[:, :, None] * n + g.variables[:, None, :] for g in cone.cone.groups]
        self.places = np.concatenate([place.ravel() for place in places])
        self.n = n

    def gradient(
        self, solution: Solution, bound: float, moments: np.ndarray, grams: Grams
    ) -> Gradient:
        """The same as ``certificate_gradient``."""
        local = solution.cone.local_hessians(solution.inverses, solution.grams)
        weights = np.concatenate([part.ravel() for part in local])
        matrix = np.bincount(self.places, weights, minlength=self.n**2).reshape(self.n, self.n)
        factor = linalg.cho_factor(matrix.T, overwrite_a=True, check_finite=False)
        q = solution.q
        right = np.stack([adjoint_right(solution, moments, grams), q], axis=1)
        w, v = linalg.cho_solve(factor, right, check_finite=False).T
        t = (q @ w + bound) / (q @ v)
        return assemble(solution, w - t * v, t, grams)
