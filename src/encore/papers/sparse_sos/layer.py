"""Torch layers: coefficients in, certified bounds (and certificates) out, with gradients."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from encore.papers.sparse_sos.block_sdp import BlockStructure
from encore.papers.sparse_sos.cone import Grams
from encore.papers.sparse_sos.conic import ClarabelForm
from encore.papers.sparse_sos.errors import InfeasibleSOSError
from encore.papers.sparse_sos.implicit import Gradient, bound_gradient, certificate_gradient
from encore.papers.sparse_sos.program import Program
from encore.papers.sparse_sos.solver import Solution, solve

OUTPUTS = ("bound", "moments", "gram")


@dataclass
class SOSOutput:
    """What a layer returns.

    Attributes:
        bound: (B,) certified lower bounds (up to rounding; see ``verify_certificate``).
        moments: (B, N); without gradient unless "moments" or "gram" is among the outputs.
        gram: one (B, s_k, s_k) for every block, or None if only the bound is asked for.
        status: "centred" or the solver's complaint, for every item.
        program: the structure.
        normaliser, data: what was solved with, (B, N) and (B, D).
    """

    bound: Tensor
    moments: Tensor
    gram: list[Tensor] | None
    status: list[str]
    program: Program = field(repr=False)
    normaliser: np.ndarray = field(repr=False)
    data: np.ndarray = field(repr=False)


class SOSLayer(nn.Module):
    """The mu-centred solution of a sparse SOS program as a differentiable function of its coefficients.

    Args:
        program: structure, from ``SOSProgram.build`` or a task.
        mu: barrier parameter in units of the coefficients; the bound is within mu times the sum of
            the block sizes of the relaxation's value.
        solver: "clarabel", or "barrier" (own path following; no other package).
        outputs: ("bound",) keeps the moments only and differentiates by the envelope theorem;
            "moments" or "gram" add the implicit backward, one sparse solve per item.
        on_failure: "raise", or "nan" for items that have no certificate.
        dtype: in which results come back when the input is not floating point; a float32 input is
            solved in float64 and cast back.

    Raises:
        ValueError: an option that is not one of these.
    """

    def __init__(
        self,
        program: Program,
        *,
        mu: float = 1e-6,
        solver: Literal["clarabel", "barrier"] = "clarabel",
        outputs: Sequence[str] = ("bound",),
        on_failure: Literal["raise", "nan"] = "raise",
        dtype: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        if not mu > 0:
            raise ValueError(f"mu={mu!r}; expected a positive number")
        if solver not in ("clarabel", "barrier"):
            raise ValueError(f"solver={solver!r}; expected 'clarabel' or 'barrier'")
        if on_failure not in ("raise", "nan"):
            raise ValueError(f"on_failure={on_failure!r}; expected 'raise' or 'nan'")
        if not outputs or set(outputs) - set(OUTPUTS):
            raise ValueError(f"outputs={tuple(outputs)}; expected some of {OUTPUTS}")
        self.program, self.mu, self.method = program, float(mu), solver
        self.outputs, self.on_failure, self.dtype = tuple(outputs), on_failure, dtype
        self._form: ClarabelForm | None = None

    @property
    def scalar(self) -> bool:
        """Whether only the bound is differentiated."""
        return self.outputs == ("bound",)

    def forward(
        self, coeffs: Tensor, normaliser: Tensor | None = None, data: Tensor | None = None
    ) -> SOSOutput:
        """Solve a batch.

        Args:
            coeffs: (B, T) coefficients in the order of the program's support.
            normaliser: (B, Tq) coefficients of q; default the program's.
            data: (B, D) coefficients of the inequalities, one after the other; default the program's.

        Raises:
            ValueError: a wrong shape, an entry that is not finite, a mu below 1e-10 of the largest
                coefficient.
            TypeError: complex input, or no tensor.
            InfeasibleSOSError: an item has no certificate (with on_failure="raise").
        """
        parts = self._inputs(coeffs, normaliser, data)
        status: list[str] = []
        bound, moments, *gram = _Solve.apply(self, status, *parts)
        kind = coeffs.dtype if coeffs.is_floating_point() else self.dtype
        return SOSOutput(
            bound.to(kind),
            moments.to(kind),
            [part.to(kind) for part in gram] or None,
            status,
            self.program,
            parts[1].detach().numpy() @ self.program.norm_map.T,
            parts[2].detach().numpy(),
        )

    def _inputs(self, coeffs, normaliser, data) -> tuple[Tensor, Tensor, Tensor]:
        program = self.program
        coeffs = _checked("coeffs", coeffs, program.num_coeffs)
        size = len(coeffs)
        if normaliser is None:
            normaliser = torch.from_numpy(program.norm_coeffs).expand(size, -1)
        if data is None:
            data = torch.from_numpy(program.data).expand(size, -1)
        normaliser = _checked("normaliser", normaliser, len(program.norm_coeffs), size)
        return coeffs, normaliser, _checked("data", data, len(program.data), size)

    def solve(self, p: np.ndarray, q: np.ndarray, data: np.ndarray) -> Solution:
        """Solve one item, given as objective and normaliser on the moments (N,) and data (D,)."""
        scale = np.abs(p).max(initial=0.0)
        if self.mu < 1e-10 * scale:
            raise ValueError(
                f"mu={self.mu}; expected at least 1e-10 of the coefficients ({scale:.1e})"
            )
        fixed = not len(data) and np.array_equal(q, self.program.normaliser)
        if fixed and self._form is None and self.method == "clarabel":
            self._form = ClarabelForm(self.program.cone.at(data), q)
        return solve(
            self.program, p, self.mu, solver=self.method, q=q, data=data,
            form=self._form if fixed else None,
        )  # fmt: skip

    def adjoint(
        self, solution: Solution, bound: float, moments: np.ndarray, grams: Grams
    ) -> Gradient:
        """Gradient of a certificate loss: the sparse implicit backward."""
        return certificate_gradient(solution, bound, moments, grams)


class BlockSDPLayer(SOSLayer):
    """The same for a clique-sparse linear SDP: least <C, X> with linear equalities, X >= 0 on cliques.

    Args:
        structure: a ``BlockStructure`` (or the program of one); the coefficients are its costs.
        options: those of ``SOSLayer``.
    """

    def __init__(self, structure: BlockStructure | Program, **options: Any) -> None:
        program = structure.program() if isinstance(structure, BlockStructure) else structure
        super().__init__(program, **options)


def _checked(name: str, value: Any, width: int, size: int | None = None) -> Tensor:
    """The tensor in float64, checked for kind, shape and finite entries."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
    if value.is_complex():
        raise TypeError(f"{name} must be real, got {value.dtype}")
    if value.dim() != 2 or value.shape[1] != width or size not in (None, len(value)):
        rows = "B" if size is None else size
        raise ValueError(f"{name} must be ({rows}, {width}), got shape {tuple(value.shape)}")
    if not torch.isfinite(value).all():
        row, column = torch.nonzero(~torch.isfinite(value))[0].tolist()
        raise ValueError(f"{name}[{row}, {column}] is {value[row, column].item()}; expected finite")
    return value.to("cpu", torch.float64)


class _Solve(torch.autograd.Function):
    """Batch of solves; what is kept for the backward depends on the layer's outputs."""

    @staticmethod
    def forward(ctx, layer, status, coeffs, normaliser, data):
        program = layer.program
        p = coeffs.numpy() @ program.objective.T
        q = normaliser.numpy() @ program.norm_map.T
        items = [
            _item(layer, i, *row, status)
            for i, row in enumerate(zip(p, q, data.numpy(), strict=True))
        ]
        ctx.layer, ctx.size = layer, len(items)
        n = program.cone.num_variables
        bound = _stacked([s and np.array(s.bound) for s in items], ())
        moments = _stacked([s and s.y for s in items], (n,))
        if layer.scalar:
            slots = [s and bound_gradient(s).data for s in items]
            ctx.save_for_backward(bound, moments, _stacked(slots, data.shape[1:]))
            ctx.mark_non_differentiable(moments)
            return bound, moments
        ctx.items = items
        blocks = [s and program.cone.split(s.grams) for s in items]
        sizes = enumerate(program.block_sizes)
        return bound, moments, *(_stacked([b and b[k] for b in blocks], (s, s)) for k, s in sizes)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_bound, d_moments, *d_gram):
        program = ctx.layer.program
        if ctx.layer.scalar:
            bound, moments, slots = (part.numpy() for part in ctx.saved_tensors)
            weight = d_bound.numpy()[:, None]
            p, q, data = weight * moments, -weight * bound[:, None] * moments, weight * slots
        else:
            adjoints = zip(ctx.items, d_bound, d_moments, *d_gram, strict=True)
            found = [_adjoint(ctx.layer, *row) for row in adjoints]
            widths = (program.cone.num_variables,) * 2 + (len(program.data),)
            p, q, data = (
                np.array([g[k] for g in found]).reshape(ctx.size, width)
                for k, width in enumerate(widths)
            )
        parts = (p @ program.objective, q @ program.norm_map, data)
        return None, None, *(torch.from_numpy(np.ascontiguousarray(part)) for part in parts)


def _item(
    layer: SOSLayer, i: int, p: np.ndarray, q: np.ndarray, data: np.ndarray, status: list[str]
) -> Solution | None:
    """Solve one item, or note why there is no solution."""
    try:
        solution = layer.solve(p, q, data)
    except InfeasibleSOSError as error:
        if layer.on_failure == "raise":
            raise InfeasibleSOSError(error.status, i) from None
        status.append(error.status)
        return None
    status.append("centred")
    return solution


def _stacked(parts: Sequence[np.ndarray | None], shape: tuple[int, ...]) -> Tensor:
    """(B, ...) with NaN where an item failed."""
    rows = [np.full(shape, np.nan) if part is None else part for part in parts]
    return torch.from_numpy(np.array(rows, float).reshape(len(rows), *shape))


def _adjoint(
    layer: SOSLayer, solution: Solution | None, bound: Tensor, moments: Tensor, *gram: Tensor
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of one item; NaN where it failed."""
    program = layer.program
    if solution is None:
        n = program.cone.num_variables
        return np.full(n, np.nan), np.full(n, np.nan), np.full(len(program.data), np.nan)
    blocks = [(g.numpy() + g.numpy().T) / 2 for g in gram]
    found = layer.adjoint(solution, float(bound), moments.numpy(), program.cone.stack(blocks))
    return found.p, found.q, found.data
