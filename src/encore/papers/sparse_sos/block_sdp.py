"""Linear SDPs whose matrix is only needed on the cliques of a chordal graph.

Least <C, X> over symmetric X with linear equalities and X >= 0. If costs and equalities touch entries
of a chordal pattern only, X >= 0 may be asked of the cliques' blocks alone (Grone et al., 1984). Equalities
are eliminated, so the remaining entries are free moments.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import networkx as nx
import numpy as np
from scipy import sparse

from encore.papers.sparse_sos.chordal import check_running_intersection, chordal_cliques
from encore.papers.sparse_sos.cone import Block, MomentCone
from encore.papers.sparse_sos.elimination import Row, eliminate, representable, substitute
from encore.papers.sparse_sos.program import Program

Entry = tuple[int, int]
Equality = tuple[dict[Entry, float], float]


@dataclass
class BlockStructure:
    """Which entries of X cost something, and what they must satisfy.

    Attributes:
        size: rows of X.
        costs: one dict {(i, j): weight} for every coefficient: it multiplies sum weight * X_ij. The
            key (-1, -1) stands for the constant 1.
        equalities: pairs ({(i, j): weight}, value) with sum weight * X_ij = value.
        cliques: rows of each block in running-intersection order; default from a chordal extension.
    """

    size: int
    costs: Sequence[dict[Entry, float]]
    equalities: Sequence[Equality]
    cliques: Sequence[tuple[int, ...]] | None = field(default=None)

    def program(self) -> Program:
        """The program on free entries.

        Raises:
            ValueError: an entry outside X or outside every clique, or equalities that contradict
                each other.
        """
        cliques = self._cliques()
        held = {pair for clique in cliques for pair in _pairs(clique)}
        for entry in self._entries():
            if entry not in held:
                raise ValueError(
                    f"entry {entry} lies in no clique; add it to one or leave cliques out"
                )
        fixed = eliminate([_row(*equality) for equality in self.equalities], CONSTANT, _itself)
        free = sorted(held - set(fixed))
        names = {entry: k for k, entry in enumerate([CONSTANT, *free])}
        costs = [substitute(_row(cost, 0.0), fixed) for cost in self.costs]
        columns = [(names[e], t, float(w)) for t, cost in enumerate(costs) for e, w in cost.items()]
        row, col, value = zip(*columns, strict=True)
        shape = (len(names), len(self.costs))
        return Program(
            cone=MomentCone(len(names), [_block(clique, names, fixed) for clique in cliques]),
            objective=sparse.csr_matrix((value, (row, col)), shape=shape),
            norm_map=sparse.csr_matrix(([1.0], ([0], [0])), shape=(len(names), 1)),
            norm_coeffs=np.ones(1),
            data=np.zeros(0),
            exact=representable([*fixed.values(), *costs]),
        )

    def _entries(self) -> set[Entry]:
        rows = [*self.costs, *(weights for weights, _ in self.equalities)]
        entries = {_sorted(entry) for row in rows for entry in row} - {CONSTANT}
        for entry in sorted(entries):
            if not 0 <= entry[0] <= entry[1] < self.size:
                raise ValueError(f"entry {entry} lies outside X, which has {self.size} rows")
        return entries

    def _cliques(self) -> list[tuple[int, ...]]:
        if self.cliques is not None:
            chosen = [tuple(sorted(clique)) for clique in self.cliques]
            check_running_intersection(chosen)
            return chosen
        graph = nx.empty_graph(self.size)
        graph.add_edges_from(entry for entry in self._entries() if entry[0] != entry[1])
        return chordal_cliques(graph)


CONSTANT: Entry = (-1, -1)


def _sorted(entry: Entry) -> Entry:
    return (min(entry), max(entry))


def _itself(entry: Entry) -> Entry:
    return entry


def _pairs(clique: tuple[int, ...]) -> list[Entry]:
    return [(i, i) for i in clique] + list(combinations(clique, 2))


def _row(weights: dict[Entry, float], value: float) -> Row:
    row = {CONSTANT: -Fraction(value)} if value else {}
    for entry, weight in weights.items():
        row[_sorted(entry)] = row.get(_sorted(entry), Fraction(0)) + Fraction(weight)
    return row


def _block(clique: tuple[int, ...], names: dict[Entry, int], fixed: dict[Entry, Row]) -> Block:
    entries = []
    place = {vertex: i for i, vertex in enumerate(clique)}
    for a, b in _pairs(clique):
        for name, value in substitute({(a, b): Fraction(1)}, fixed).items():
            i, j = place[a], place[b]
            entries.append((i, j, names[name], float(value)))
            if i != j:
                entries.append((j, i, names[name], float(value)))
    row, col, variable, value = map(np.array, zip(*entries, strict=True))
    return Block(len(clique), row, col, variable, value, np.full(len(row), -1))
