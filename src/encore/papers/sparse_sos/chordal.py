"""Chordal extensions: the cliques that carry a sparse certificate.

Eliminating the vertices of a graph one by one, each time joining the neighbours that are left, gives a
chordal graph; its maximal cliques, from the root of their tree on, have the running-intersection
property that sparse moment relaxations rest on (Waki et al., SIAM J. Optim. 17, 2006).
"""

import heapq
from collections.abc import Iterable, Sequence

import networkx as nx


def chordal_cliques(graph: nx.Graph, order: str = "mindegree") -> list[tuple[int, ...]]:
    """Maximal cliques of a chordal extension, in running-intersection order.

    Args:
        graph: undirected, vertices 0..n-1.
        order: "mindegree" eliminates a vertex of least degree next, "natural" goes by number.

    Returns:
        Sorted tuples of vertices; each meets the union of the earlier ones inside one of them.

    Raises:
        ValueError: an unknown order, or vertices that are not 0..n-1.
    """
    if order not in ("mindegree", "natural"):
        raise ValueError(f"order={order!r}; expected 'mindegree' or 'natural'")
    n = graph.number_of_nodes()
    if set(graph.nodes) != set(range(n)):
        raise ValueError(f"graph must have the vertices 0..{n - 1}, got {sorted(graph.nodes)[:5]}…")
    later = _eliminate(graph, order == "mindegree")
    position = {vertex: i for i, vertex in enumerate(later)}
    parent = {v: min(around, key=position.__getitem__) for v, around in later.items() if around}
    holder: dict[int, int] = {}  # vertex -> the vertex whose clique is the maximal one around it
    for v in later:
        holder.setdefault(v, v)
        up = parent.get(v)
        if up is not None and up not in holder and len(later[v]) == len(later[up]) + 1:
            holder[up] = holder[v]
    children: dict[int | None, list[int]] = {}
    for v in sorted(set(holder.values()), key=position.__getitem__):
        top = v
        while top in parent and holder[parent[top]] == v:
            top = parent[top]
        above = holder[parent[top]] if top in parent else None
        children.setdefault(above, []).append(v)
    stack, cliques = list(children.get(None, [])), []
    while stack:
        v = stack.pop()
        cliques.append(tuple(sorted({v, *later[v]})))
        stack.extend(children.get(v, []))
    return cliques


def _eliminate(graph: nx.Graph, by_degree: bool) -> dict[int, set[int]]:
    """Neighbours of each vertex at its elimination, in the order of elimination."""
    left = {v: set(graph[v]) - {v} for v in graph.nodes}
    heap = [(len(left[v]) if by_degree else 0, v) for v in sorted(left)]
    heapq.heapify(heap)
    later: dict[int, set[int]] = {}
    while heap:
        degree, vertex = heapq.heappop(heap)
        if vertex in later or (by_degree and degree != len(left[vertex])):
            continue
        later[vertex] = around = left.pop(vertex)
        for v in around:
            left[v] |= around
            left[v] -= {v, vertex}
            if by_degree:
                heapq.heappush(heap, (len(left[v]), v))
    return later


def check_running_intersection(cliques: Sequence[Iterable[int]]) -> None:
    """Raise ``ValueError`` at the first clique that meets the earlier ones in no single one of them."""
    seen: set[int] = set()
    sets = [set(clique) for clique in cliques]
    for k, clique in enumerate(sets):
        shared = clique & seen
        if shared and not any(shared <= earlier for earlier in sets[:k]):
            raise ValueError(
                f"cliques[{k}] = {tuple(sorted(clique))} shares {tuple(sorted(shared))} with earlier "
                "cliques, but no single one holds it; expected the running-intersection property"
            )
        seen |= clique
