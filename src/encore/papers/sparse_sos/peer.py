"""The peer diffcp (Agrawal et al., 2019) on a program, without torch."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from encore.papers.sparse_sos.conic import ConicForm
from encore.papers.sparse_sos.program import Program


@dataclass
class Solved:
    """A solution by SCS and the adjoint of its derivative."""

    bound: float
    y: np.ndarray
    blocks: list[np.ndarray]
    adjoint: Callable


class DiffcpForm:
    """A program in SCS's form, laid out once.

    Args:
        program: structure with its default normaliser and data.
        mode: "dense" or "lsqr".
        eps: tolerance of SCS.
    """

    def __init__(self, program: Program, mode: str, eps: float = 1e-7) -> None:
        cone = program.cone.at(program.data)
        self.form = ConicForm.of(cone, program.normaliser, lower=True)
        self.cones = {"z": 1, "s": program.block_sizes}
        self.mode, self.eps = mode, eps

    def solve(self, p: np.ndarray) -> Solved:
        """Solve for the objective p (N,); ``ArithmeticError`` from diffcp where SCS fails."""
        import diffcp

        x, dual, _, _, adjoint = diffcp.solve_and_derivative(
            self.form.matrix, self.form.right, p, self.cones, mode=self.mode,
            solve_method="SCS", eps=self.eps, max_iters=100_000,
        )  # fmt: skip
        return Solved(float(p @ x), x, self.form.blocks(dual), adjoint)

    def gradient(self, solved: Solved, moments: np.ndarray, grams: list[np.ndarray]) -> np.ndarray:
        """Gradient in p (N,) of a loss with these derivatives in moments and Gram blocks."""
        dual = self.form.vector(grams)
        _, _, p = solved.adjoint(moments, dual, np.zeros_like(dual))
        return p
