"""Check a certificate rigorously: exact coefficients, and eigenvalues with a rounding bound.

The Gram blocks are floating-point numbers, that is, exact rationals. The residual of
p - bound q = sum_k A_k'(Q_k) is computed exactly and pushed into Gram entries that hold its
monomial, so that the identity becomes exact; what is left to show is that the corrected blocks are
positive semidefinite. If Cholesky's factorisation of A - t I runs through in floating point, then
A >= t - c with c = (s + 3) u trace(|A|) up to second order (Rump, BIT 46, 2006; Higham, ch. 10).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from encore.papers.sparse_sos.cone import MomentCone
from encore.papers.sparse_sos.polynomial import SparsePolynomial
from encore.papers.sparse_sos.program import Program, SOSProgram

UNIT = 2.0**-53


@dataclass(frozen=True)
class CertificateReport:
    """What a certificate proves.

    Attributes:
        max_residual: largest coefficient of p - bound q - sum_k A_k'(Q_k) as the layer returned it.
        min_eig: proven lower bound on the eigenvalues of the corrected blocks.
        rigorous_bound: proven lower bound; -inf if nothing is proven.
    """

    max_residual: float
    min_eig: float
    rigorous_bound: float


def verify_certificate(
    poly: SparsePolynomial | np.ndarray, output: Any, box: float | None = None, item: int = 0
) -> CertificateReport:
    """Prove a lower bound from a layer's Gram blocks.

    Args:
        poly: the polynomial that was solved (or its coefficients (T,) in the program's order).
        output: a ``SOSOutput`` with Gram blocks.
        box: if given, the bound is only claimed for |x_i| <= box; then residuals that no block can
            hold and slightly negative eigenvalues are paid for by the bound.
        item: which item of the batch.

    Raises:
        ValueError: an output without Gram blocks, a program with rounded entries, box <= 0, or a term outside the program's support
            (without a box).
    """
    if output.gram is None:
        raise ValueError("output has no Gram blocks; build the layer with outputs=('gram',)")
    if box is not None and not box > 0:
        raise ValueError(f"box={box}; expected a positive number")
    program, extra = output.program, 0.0
    if not program.exact:
        raise ValueError("the program's equalities lead to rounded weights; nothing can be proven")
    coeffs = np.asarray(poly, float) if not isinstance(poly, SparsePolynomial) else None
    if coeffs is None:
        coeffs, extra = _on_support(poly, program.support, box)
    if coeffs.shape != (program.num_coeffs,):
        raise ValueError(f"poly must have {program.num_coeffs} coefficients, got {coeffs.shape}")
    blocks = [part[item].detach().double().numpy() for part in output.gram]
    numbers = (coeffs, output.normaliser[item], output.data[item])
    return check_blocks(program, *numbers, blocks, output.bound[item].item(), box, extra)


def check_blocks(
    program: Program,
    coeffs: np.ndarray,
    q: np.ndarray,
    data: np.ndarray,
    blocks: list[np.ndarray],
    bound: float,
    box: float | None = None,
    extra: float = 0.0,
) -> CertificateReport:
    """The same for plain arrays.

    Args:
        coeffs, q, data: coefficients (T,), normaliser (N,) and inequality coefficients (D,).
        blocks: Gram blocks (s_k, s_k), symmetric.
        bound: what the blocks are said to prove.
        extra: what terms outside the program may take away from the bound on the box.
    """
    if not all(np.isfinite(block).all() for block in blocks):
        return CertificateReport(np.inf, -np.inf, -np.inf)
    return _Check(program, coeffs, q, data, blocks).report(bound, box, extra)


def _on_support(
    poly: SparsePolynomial, support: np.ndarray, box: float | None
) -> tuple[np.ndarray, float]:
    """Coefficients on the support, and a bound on what lies outside of it (only with a box)."""
    if box is None:
        return poly.on(support), 0.0
    known = {tuple(row) for row in support.tolist()}
    inside = np.array([tuple(row) in known for row in poly.exponents.tolist()], bool)
    powers = _up(float(box)) ** poly.exponents[~inside].sum(1)
    extra = float((np.abs(poly.coeffs[~inside]) * powers).sum()) * (1 + 1e-12)
    kept = SparsePolynomial(poly.exponents[inside], poly.coeffs[inside])
    return kept.on(support), extra


class _Check:
    """The identity in exact arithmetic."""

    def __init__(self, program: Program, coeffs, q, data, blocks) -> None:
        self.program, self.q = program, [Fraction(float(value)) for value in q]
        self.data = [Fraction(float(value)) for value in data] + [Fraction(1)]
        self.blocks = blocks
        self.p = [Fraction(0)] * program.cone.num_variables
        objective = program.objective.tocoo()
        for j, t, value in zip(*objective.coords, objective.data, strict=True):
            self.p[j] += Fraction(float(value)) * Fraction(float(coeffs[t]))
        self.sums = self._adjoint(program.cone)

    def _adjoint(self, cone: MomentCone) -> list[Fraction]:
        total = [Fraction(0)] * cone.num_variables
        for block, gram in zip(cone.blocks, self.blocks, strict=True):
            numbers = gram[block.row, block.col].tolist()
            rows = zip(
                block.variable.tolist(), block.value.tolist(), block.slot.tolist(), numbers,
                strict=True,
            )  # fmt: skip
            for variable, value, slot, number in rows:
                term = Fraction(number)
                if value != 1.0:
                    term *= Fraction(value)
                total[variable] += term if slot < 0 else term * self.data[slot]
        return total

    def report(self, bound: float, box: float | None, extra: float) -> CertificateReport:
        """Correct the blocks, then prove them positive semidefinite."""
        used = [j for j, value in enumerate(self.q) if value]
        exact = Fraction(bound)
        rest = [p - exact * q - s for p, q, s in zip(self.p, self.q, self.sums, strict=True)]
        residual = float(max(abs(value) for value in rest))
        if len(used) == 1:  # the bound itself takes up the residual of q's monomial
            exact += rest[used[0]] / self.q[used[0]]
            rest[used[0]] = Fraction(0)
        slack, unplaced = Fraction(extra), self._push(rest)
        sizes = self._sizes(box) if box is not None else None
        if unplaced and sizes is None:
            return CertificateReport(residual, -np.inf, -np.inf)
        for j in unplaced:
            slack += abs(rest[j]) * Fraction(sizes[j])
        eigenvalues = [lowest_eigenvalue(block) for block in self.blocks]
        least = min(eigenvalues)
        if least < 0 and sizes is None:
            return CertificateReport(residual, least, -np.inf)
        for block, gram, value in zip(
            self.program.cone.blocks, self.blocks, eigenvalues, strict=True
        ):
            if value < 0:
                slack += Fraction(-value) * self._trace(block, sizes, len(gram))
        return CertificateReport(residual, least, _down(exact - slack))

    def _push(self, rest: list[Fraction]) -> list[int]:
        """Move each residual into an entry that holds its monomial; returns those without such an entry."""
        entries = self._entries()
        pure = {cell[0][0]: place for place, cell in reversed(entries.items()) if len(cell) == 1}
        mixed = {
            j: place
            for place, cell in entries.items()
            for j, _ in cell
            if j not in pure and all(i == j or i in pure for i, _ in cell)
        }
        self.blocks = [
            [[Fraction(v) for v in row] for row in gram.tolist()] for gram in self.blocks
        ]
        for j, place in [*mixed.items(), *pure.items()]:
            if rest[j]:
                weight = rest[j] / dict(entries[place])[j]
                for i, value in entries[place]:
                    rest[i] -= weight * value
                self._raise(place, weight)
        return [j for j, value in enumerate(rest) if value]

    def _raise(self, place: tuple[int, int, int], weight: Fraction) -> None:
        k, row, col = place
        share = weight if row == col else weight / 2
        self.blocks[k][row][col] += share
        if row != col:
            self.blocks[k][col][row] += share

    def _entries(self) -> dict[tuple[int, int, int], list[tuple[int, Fraction]]]:
        """Lower-triangle entries that depend on no data: what they hold, as (variable, value)."""
        cells: dict[tuple[int, int, int], list[tuple[int, Fraction]]] = {}
        for k, block in enumerate(self.program.cone.blocks):
            if (block.slot >= 0).any():
                continue
            rows = zip(block.row.tolist(), block.col.tolist(), block.variable.tolist(),
                       block.value.tolist(), strict=True)  # fmt: skip
            for row, col, variable, value in rows:
                if row >= col:
                    cells.setdefault((k, row, col), []).append((variable, Fraction(value)))
        return cells

    def _sizes(self, box: float) -> list[float]:
        """Bounds on the monomials over the box."""
        if not isinstance(self.program, SOSProgram):
            raise ValueError("box needs a polynomial program; this one has matrix entries")
        degrees = self.program.monomials.sum(1).tolist()
        return [_up(_up(float(box)) ** degree) for degree in degrees]

    def _trace(self, block, sizes, order: int) -> Fraction:
        """A bound on the trace of a block over the box."""
        on = block.row == block.col
        rows = zip(
            block.variable[on].tolist(),
            block.value[on].tolist(),
            block.slot[on].tolist(),
            strict=True,
        )
        return sum(
            (
                abs(Fraction(value) * (self.data[slot] if slot >= 0 else 1)) * Fraction(sizes[j])
                for j, value, slot in rows
            ),
            Fraction(0),
        )


def lowest_eigenvalue(block: list[list[Fraction]]) -> float:
    """A proven lower bound on the eigenvalues of a symmetric matrix of rationals."""
    matrix = np.array([[float(value) for value in row] for row in block])
    order = len(matrix)
    size = float(np.abs(np.diag(matrix)).sum() + np.linalg.norm(matrix)) + 1e-290
    rounding = 4 * (order + 3) * UNIT * size  # of the entries, the shift and the factorisation
    guess = float(np.linalg.eigvalsh(matrix)[0]) - rounding
    for _ in range(60):
        try:
            np.linalg.cholesky(matrix - guess * np.eye(order))
        except np.linalg.LinAlgError:
            guess -= max(rounding, 0.1 * abs(guess))
            continue
        return guess - rounding
    return -np.inf


def _down(value: Fraction) -> float:
    """The largest float that is not above a rational."""
    result = float(value)
    return result if Fraction(result) <= value else float(np.nextafter(result, -np.inf))


def _up(value: float) -> float:
    return float(np.nextafter(value, np.inf))
