"""Sparse SOS programs: which monomials, which blocks, which entries; no numbers in them.

The largest bound with p - bound * q in the sparse SOS cone is the least p . y over moment vectors y
with q . y = 1 and M_k(y) >= 0, one block for every clique and one for every inequality (Waki et al.,
2006). Equalities are divided out clique by clique: multiples of an equality vanish, so some moments
are linear in others (pivots are taken among monomials of one clique only, which keeps the pattern),
and monomials that depend on others leave the bases. So the blocks keep an interior and the barrier
a centre (our choice; rows on y alone would leave every block singular).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement
from operator import add
from typing import Any, Literal

import numpy as np
from scipy import sparse

from encore.papers.sparse_sos.chordal import check_running_intersection, chordal_cliques
from encore.papers.sparse_sos.cone import Block, MomentCone
from encore.papers.sparse_sos.elimination import Row, eliminate, representable
from encore.papers.sparse_sos.polynomial import (
    SparsePolynomial,
    check_exponents,
    support_graph,
    term_name,
)

Monomial = tuple[int, ...]


@dataclass
class Program:
    """Least coeffs . C' y over y with q . y = 1 and all blocks positive semidefinite.

    Attributes:
        cone: the blocks.
        objective: C, (N, T) sparse map from the coefficients to the objective on y.
        norm_map: (N, Tq) sparse map from the coefficients of the normaliser to q.
        norm_coeffs: (Tq,) default coefficients of the normaliser.
        data: (D,) default coefficients of the inequalities, one after the other.
        exact: whether the entries' weights are free of rounding, which a rigorous check needs.
    """

    cone: MomentCone
    objective: sparse.csr_matrix
    norm_map: sparse.csr_matrix
    norm_coeffs: np.ndarray
    data: np.ndarray
    exact: bool

    @property
    def normaliser(self) -> np.ndarray:
        """q (N,); its first entry is 1 and the others 0 for an ordinary bound."""
        return self.norm_map @ self.norm_coeffs

    @property
    def block_sizes(self) -> list[int]:
        """Rows of every block."""
        return [block.size for block in self.cone.blocks]

    @property
    def num_coeffs(self) -> int:
        """T, the number of coefficients that a solve takes."""
        return self.objective.shape[1]


@dataclass
class SOSProgram(Program):
    """A sparse SOS relaxation of one support; see ``build``.

    Attributes:
        support: (T, n) exponents of the coefficients, in the order in which they are given.
        monomials: (N, n) exponents of the moments y.
        cliques: variables of each clique.
        bases: for every block the (s, n) exponents that index its rows.
        index: for every block the (s, s) position in ``monomials`` of each entry (-1: a combination).
        coeff_slots: (T,) position in ``monomials`` of each coefficient (-1: a combination).
    """

    support: np.ndarray = field(default_factory=lambda: np.zeros((0, 1), int))
    monomials: np.ndarray = field(default_factory=lambda: np.zeros((0, 1), int))
    cliques: list[tuple[int, ...]] = field(default_factory=list)
    bases: list[np.ndarray] = field(default_factory=list)
    index: list[np.ndarray] = field(default_factory=list)
    coeff_slots: np.ndarray = field(default_factory=lambda: np.zeros(0, int))

    @classmethod
    def build(
        cls,
        support: Any,
        *,
        cliques: Literal["auto"] | Sequence[Sequence[int]] = "auto",
        inequalities: Sequence[SparsePolynomial] = (),
        equalities: Sequence[SparsePolynomial] = (),
        degree: int | None = None,
        normaliser: SparsePolynomial | None = None,
        constant: bool = True,
    ) -> "SOSProgram":
        """Lay out the relaxation.

        Args:
            support: (T, n) exponents, or a polynomial whose exponents are meant.
            cliques: variables of each clique in running-intersection order; "auto" takes the
                maximal cliques of a chordal extension of the support graph.
            inequalities: polynomials g >= 0; their coefficients are the default ``data``.
            equalities: polynomials h = 0 with fixed coefficients, each inside a clique.
            degree: relaxation degree 2d (even); default the least that holds everything.
            normaliser: q (default 1); its coefficients are a default, too.
            constant: False leaves 1 out of all bases, for p and q that vanish at the origin.

        Raises:
            ValueError: a term inside no clique, an odd degree, no running intersection,
                equalities that contradict each other.
        """
        if isinstance(support, SparsePolynomial):
            support = support.combined().exponents
        support = check_exponents(support)
        layout = _Layout(support, inequalities, equalities, normaliser, cliques, degree, constant)
        return layout.program()


class _Layout:
    """The steps of ``SOSProgram.build``."""

    def __init__(
        self, support, inequalities, equalities, normaliser, cliques, degree, constant
    ) -> None:
        self.support, self.n = support, support.shape[1]
        self.inequalities, self.equalities = list(inequalities), list(equalities)
        self.normaliser = normaliser or SparsePolynomial.constant(1.0, self.n)
        self.constant = constant
        self.half = self._half_degree(degree)
        self.cliques = self._cliques(cliques)
        self.solved = self._solve_equalities()
        self.bases = self._bases()

    def _half_degree(self, degree: int | None) -> int:
        top = max(self.support.sum(1).max(initial=0), self.normaliser.degree)
        constraints = [g.degree for g in [*self.inequalities, *self.equalities]]
        if degree is None:
            if top % 2 and not constraints:
                raise ValueError(f"the top degree is {top}; a sum of squares has an even degree")
            degree = max([top, *constraints]) + 1
        elif degree % 2 or degree < max([top, *constraints]):
            raise ValueError(
                f"degree={degree}; expected an even number >= {max([top, *constraints])}"
            )
        return int(degree) // 2

    def _cliques(self, cliques) -> list[tuple[int, ...]]:
        whole = [g.exponents for g in [*self.inequalities, *self.equalities]]
        if isinstance(cliques, str):
            if cliques != "auto":
                raise ValueError(f"cliques={cliques!r}; expected 'auto' or a list of cliques")
            graph = support_graph([self.support, self.normaliser.exponents], self.n)
            graph.add_edges_from(support_graph(whole, self.n, whole=True).edges)
            return chordal_cliques(graph)
        chosen = [tuple(sorted(int(v) for v in clique)) for clique in cliques]
        check_running_intersection(chosen)
        for row in np.concatenate([self.support, self.normaliser.exponents]):
            self._home(row, chosen, f"term {term_name(row)}")
        for exponents in whole:
            self._home(exponents.sum(0), chosen, "a constraint")
        return chosen

    @staticmethod
    def _home(row: np.ndarray, cliques: list[tuple[int, ...]], what: str) -> int:
        used = set(np.flatnonzero(row).tolist())
        for k, clique in enumerate(cliques):
            if used <= set(clique):
                return k
        raise ValueError(f"{what} lies in no clique; add an edge or pass cliques='auto'")

    def _multiples(self, clique: tuple[int, ...], degree: int) -> list[Row]:
        """Rows m * h of total degree up to ``degree``, for the equalities inside a clique."""
        rows = []
        for h in self.equalities:
            if not set(np.flatnonzero(h.exponents.sum(0)).tolist()) <= set(clique):
                continue
            for m in _monomials(clique, degree - h.degree, self.n):
                terms = zip(h.exponents.tolist(), h.coeffs.tolist(), strict=True)
                rows.append({_times(m, e): Fraction(c) for e, c in terms if c})
        return rows

    def _solve_equalities(self) -> dict[Monomial, Row]:
        """Moments that the equalities express by others; those of a single clique are solved first."""
        held = Counter(
            m
            for clique in (self.cliques if self.equalities else [])
            for m in _monomials(clique, 2 * self.half, self.n)
        )
        rows = [row for c in self.cliques for row in self._multiples(c, 2 * self.half)]
        return eliminate(rows, (0,) * self.n, lambda m: (-held[m], sum(m), m[::-1]))

    def _basis(self, clique: tuple[int, ...], half: int) -> list[Monomial]:
        """Monomials of degree <= half that are independent modulo the clique's equalities."""
        one = (0,) * self.n
        rows = self._multiples(clique, half)
        dependent = eliminate(rows, one, lambda m: (sum(m), m[::-1]))
        least = 0 if self.constant else 1
        chosen = _monomials(clique, half, self.n)
        return [m for m in chosen if m not in dependent and sum(m) >= least]

    def _bases(self) -> list[tuple[list[Monomial], SparsePolynomial | None, int]]:
        """(basis, inequality or None, first slot of its data) for every block."""
        moment = [self._basis(clique, self.half) for clique in self.cliques]
        if not self.inequalities and not self.equalities:
            moment = self._prune(moment)
        blocks: list[Any] = [(basis, None, -1) for basis in moment]
        slot = 0
        for g in self.inequalities:
            clique = self.cliques[self._home(g.exponents.sum(0), self.cliques, "a constraint")]
            basis = self._basis(clique, self.half - (g.degree + 1) // 2)
            blocks.append((basis, g, slot))
            slot += len(g.coeffs)
        return [block for block in blocks if block[0]]

    def _prune(self, bases: list[list[Monomial]]) -> list[list[Monomial]]:
        """Drop monomials whose square can only have the coefficient 0, until none is left."""
        wanted = {tuple(row) for row in self.support.tolist()}
        wanted |= {tuple(row) for row in self.normaliser.exponents.tolist()}
        while True:
            mixed = {
                _times(a, b) for basis in bases for i, a in enumerate(basis) for b in basis[:i]
            }
            kept = [
                [
                    m
                    for m in basis
                    if (square := tuple(2 * e for e in m)) in wanted or square in mixed
                ]
                for basis in bases
            ]
            if kept == bases:
                return bases
            bases = kept

    def program(self) -> SOSProgram:
        """Number the monomials that occur and write down every block."""
        self.names: dict[Monomial, int] = {(0,) * self.n: 0} if self.constant else {}
        blocks, index = zip(*(self._block(*basis) for basis in self.bases), strict=True)
        slots, objective = self._columns(self.support)
        _, norm_map = self._columns(self.normaliser.exponents)
        return SOSProgram(
            cone=MomentCone(len(self.names), list(blocks)),
            objective=objective,
            norm_map=norm_map,
            norm_coeffs=self.normaliser.coeffs,
            data=np.concatenate([np.zeros(0), *(g.coeffs for g in self.inequalities)]),
            exact=representable(self.solved.values()),
            support=self.support,
            monomials=np.array(list(self.names)),
            cliques=self.cliques,
            bases=[np.array(basis) for basis, _, _ in self.bases],
            index=list(index),
            coeff_slots=slots,
        )

    def _reduced(self, monomial: Monomial) -> dict[Monomial, float]:
        row = self.solved.get(monomial)
        return {monomial: 1.0} if row is None else {m: float(w) for m, w in row.items()}

    def _block(
        self, basis: list[Monomial], g: SparsePolynomial | None, slot: int
    ) -> tuple[Block, np.ndarray]:
        """Entries of one block, and its (s, s) positions in the monomials."""
        factors = [((0,) * self.n, -1)]
        if g is not None:
            factors = [(tuple(e), slot + t) for t, e in enumerate(g.exponents.tolist())]
        entries, places = [], np.full((len(basis), len(basis)), -1)
        for i, a in enumerate(basis):
            for j, b in enumerate(basis[: i + 1]):
                for shift, data in factors:
                    reduced = self._reduced(_times(_times(a, b), shift))
                    for name, value in reduced.items():
                        k = self.names.setdefault(name, len(self.names))
                        entries += [(*at, k, value, data) for at in {(i, j), (j, i)}]
                    if g is None and list(reduced.values()) == [1.0]:
                        places[i, j] = places[j, i] = self.names[next(iter(reduced))]
        row, col, variable, value, data = map(np.array, zip(*sorted(entries), strict=True))
        return Block(len(basis), row, col, variable, value, data), places

    def _columns(self, rows: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix]:
        """Where the coefficients of a support go among the moments."""
        slots, entries = np.full(len(rows), -1), []
        for t, row in enumerate(rows.tolist()):
            reduced = self._reduced(tuple(row))
            if missing := [name for name in reduced if name not in self.names]:
                raise ValueError(
                    f"term {term_name(missing[0])} lies in no block: no square can produce it; "
                    "expected even leading terms, a higher degree or constant=True"
                )
            entries.extend((self.names[name], t, value) for name, value in reduced.items())
            if list(reduced.values()) == [1.0]:
                slots[t] = self.names[next(iter(reduced))]
        i, j, value = zip(*entries, strict=True) if entries else ((), (), ())
        return slots, sparse.csr_matrix((value, (i, j)), shape=(len(self.names), len(rows)))


def _monomials(clique: tuple[int, ...], degree: int, n: int) -> list[Monomial]:
    """Monomials in a clique's variables up to a degree, by degree."""
    found = []
    for d in range(degree + 1):
        for chosen in combinations_with_replacement(clique, d):
            monomial = [0] * n
            for v in chosen:
                monomial[v] += 1
            found.append(tuple(monomial))
    return found


def _times(a: Monomial, b: Sequence[int]) -> Monomial:
    return tuple(map(add, a, b))
