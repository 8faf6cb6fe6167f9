"""Layers to compare with: dense implicit differentiation, and the peer diffcp."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from encore.papers.sparse_sos.cone import Grams
from encore.papers.sparse_sos.dense import DenseKKT
from encore.papers.sparse_sos.implicit import Gradient
from encore.papers.sparse_sos.layer import OUTPUTS, SOSLayer, SOSOutput
from encore.papers.sparse_sos.peer import DiffcpForm, Solved
from encore.papers.sparse_sos.program import Program
from encore.papers.sparse_sos.solver import Solution


class DenseKKTLayer(SOSLayer):
    """Reference: the same forward, differentiated through the dense KKT matrix by LAPACK's LU.

    Args:
        program, options: those of ``SOSLayer``; the outputs default to all.
    """

    def __init__(self, program: Program, **options: Any) -> None:
        super().__init__(program, **({"outputs": OUTPUTS} | options))
        self._dense: DenseKKT | None = None

    def adjoint(
        self, solution: Solution, bound: float, moments: np.ndarray, grams: Grams
    ) -> Gradient:
        """Gradient of a certificate loss through the dense matrix."""
        fixed = self._dense is not None and self._dense.matches(solution)
        if not fixed:
            self._dense = DenseKKT(solution.cone, solution.q)
        return self._dense.gradient(solution, bound, moments, grams)


class DiffcpLayer(nn.Module):
    """The peer diffcp on the same program: SCS forward, derivative of the conic optimality conditions.

    Args:
        program: structure; its normaliser and data are fixed.
        mode: "dense" or "lsqr", diffcp's way to solve with the derivative.
        eps: tolerance of SCS.
    """

    def __init__(self, program: Program, mode: str = "dense", eps: float = 1e-7) -> None:
        super().__init__()
        if mode not in ("dense", "lsqr"):
            raise ValueError(f"mode={mode!r}; expected 'dense' or 'lsqr'")
        self.program, self.form = program, DiffcpForm(program, mode, eps)

    def forward(self, coeffs: Tensor) -> SOSOutput:
        """Bound, moments and Gram blocks for coefficients (B, T)."""
        if coeffs.dim() != 2 or coeffs.shape[1] != self.program.num_coeffs:
            raise ValueError(
                f"coeffs must be (B, {self.program.num_coeffs}), got shape {tuple(coeffs.shape)}"
            )
        bound, moments, *gram = _Diffcp.apply(self, coeffs.double())
        q = np.tile(self.program.normaliser, (len(coeffs), 1))
        data = np.tile(self.program.data, (len(coeffs), 1))
        status = ["solved"] * len(coeffs)
        return SOSOutput(bound, moments, gram, status, self.program, q, data)


class _Diffcp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layer: DiffcpLayer, coeffs: Tensor):
        ctx.layer = layer
        ctx.solved = [layer.form.solve(layer.program.objective @ c) for c in coeffs.numpy()]
        bound = torch.tensor([s.bound for s in ctx.solved])
        moments = torch.from_numpy(np.stack([s.y for s in ctx.solved]))
        blocks = zip(*(s.blocks for s in ctx.solved), strict=True)
        return bound, moments, *(torch.from_numpy(np.stack(block)) for block in blocks)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_bound, d_moments, *d_gram):
        rows: list[np.ndarray] = []
        solved: list[Solved] = ctx.solved
        for s, b, m, *grams in zip(solved, d_bound, d_moments, *d_gram, strict=True):
            p = ctx.layer.form.gradient(s, m.numpy(), [g.numpy() for g in grams])
            rows.append((p + float(b) * s.y) @ ctx.layer.program.objective)
        return None, torch.from_numpy(np.stack(rows))
