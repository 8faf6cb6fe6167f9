"""A program in the form that conic solvers take, and Clarabel on it."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from encore.papers.sparse_sos.cone import BoundCone, Grams


@dataclass
class Point:
    """A primal-dual iterate: moments y (N,), slacks S_k, Gram matrices Q_k and the bound."""

    y: np.ndarray
    slacks: Grams
    grams: Grams
    bound: float


@dataclass
class ConicForm:
    """The program as A x + s = b with s in a product of a zero cone and PSD triangles.

    Attributes:
        matrix, right: A (m, N) and b (m,).
        triangles: for every block (row, col, scale) of its vector; off-diagonal entries carry sqrt 2.
    """

    matrix: sparse.csc_matrix
    right: np.ndarray
    triangles: list[tuple[np.ndarray, np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, cone: BoundCone, q: np.ndarray, lower: bool) -> "ConicForm":
        """Lay out the lower triangle by columns (SCS) or the upper triangle by columns (Clarabel)."""
        parts, triangles = [sparse.csr_matrix(q[None, :])], []
        for block in cone.cone.blocks:
            second, first = np.triu_indices(block.size) if lower else np.tril_indices(block.size)
            row, col = (first, second) if lower else (second, first)
            scale = np.where(row == col, 1.0, np.sqrt(2.0))
            place = np.full((block.size, block.size), -1)
            place[row, col] = np.arange(len(row))
            entry = place[block.row, block.col]
            used = entry >= 0
            value = block.value * np.append(cone.data, 1.0)[block.slot]
            value = -(value[used] * scale[entry[used]])
            shape = (len(row), cone.cone.num_variables)
            where = (entry[used], block.variable[used])
            parts.append(sparse.coo_matrix((value, where), shape=shape))
            triangles.append((row, col, scale))
        matrix = sparse.vstack(parts).tocsc()
        right = np.zeros(matrix.shape[0])
        right[0] = 1.0
        return cls(matrix, right, triangles)

    def blocks(self, vector: np.ndarray) -> list[np.ndarray]:
        """Symmetric blocks from a vector of s or of the dual (its first entry, the zero cone's, left out)."""
        result, start = [], 1
        for row, col, scale in self.triangles:
            matrix = np.zeros((row.max() + 1, row.max() + 1))
            matrix[row, col] = matrix[col, row] = vector[start : start + len(row)] / scale
            result.append(matrix)
            start += len(row)
        return result

    def vector(self, blocks: list[np.ndarray]) -> np.ndarray:
        """The adjoint of ``blocks``: gradient in the vector from gradients in symmetric blocks."""
        parts = [np.zeros(1)]
        for (row, col, scale), block in zip(self.triangles, blocks, strict=True):
            parts.append((block[row, col] + block[col, row]) / np.where(row == col, 2.0, scale))
        return np.concatenate(parts)


class ClarabelForm:
    """A program as Clarabel takes it, set up once and updated with new coefficients.

    Args:
        cone: the blocks with their data.
        q: normaliser (N,).
    """

    def __init__(self, cone: BoundCone, q: np.ndarray) -> None:
        self.cone = cone.cone
        self.form = ConicForm.of(cone, q, lower=False)
        self.solver = None

    def solve(self, p: np.ndarray, gap: float, feasibility: float = 1e-5):
        """Solve for the objective p (N,) to an absolute duality gap; returns Clarabel's solution.

        The first call sets the tolerances of all later ones.
        """
        import clarabel

        if self.solver is None:
            settings = clarabel.DefaultSettings()
            settings.verbose = False
            settings.presolve_enable = False
            settings.chordal_decomposition_enable = False
            settings.max_threads = 1
            settings.tol_gap_abs = gap
            settings.tol_gap_rel = 1e-12
            settings.tol_feas = feasibility
            cones = [clarabel.ZeroConeT(1)]
            cones += [clarabel.PSDTriangleConeT(block.size) for block in self.cone.blocks]
            zero = sparse.csc_matrix((len(p), len(p)))
            self.solver = clarabel.DefaultSolver(
                zero, p, self.form.matrix, self.form.right, cones, settings
            )
        else:
            self.solver.update(q=p)
        return self.solver.solve()

    def point(self, solution) -> Point:
        """Clarabel's solution as moments, slacks and Gram matrices."""
        slacks, grams = (
            self.form.blocks(np.array(solution.s)),
            self.form.blocks(np.array(solution.z)),
        )
        stacks = self.cone.stack(slacks), self.cone.stack(grams)
        return Point(np.array(solution.x), *stacks, -solution.z[0])
