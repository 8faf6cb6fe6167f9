"""The cone of moment vectors y whose blocks M_k(y) are positive semidefinite, and its local algebra.

Every entry of a block is a linear function of y. Two variables meet only inside a block, so the
Hessian of the barrier has the pattern of the cliques: it is built from small dense local matrices,
blocks of one shape at a time, and scattered to a sparse matrix whose pattern is analysed once.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

Grams = list[np.ndarray]  # one array (blocks, s, s) for each shape of block


@dataclass(frozen=True)
class Block:
    """Entries of one symmetric block: M[row, col] gets value * data[slot] * y[variable].

    Both triangles are listed. ``slot`` -1 stands for the constant 1, others point into the program's
    data (coefficients of inequalities).
    """

    size: int
    row: np.ndarray
    col: np.ndarray
    variable: np.ndarray
    value: np.ndarray
    slot: np.ndarray


@dataclass(frozen=True)
class Group:
    """Blocks of one size with one number of variables, stacked.

    Attributes:
        members: (K,) positions of the blocks in the program.
        variables: (K, m) variables of each block.
        maps: (1 or K, m, s*s) constant part of the map from variables to entries.
        varying: (entry of ``maps`` flattened, value, slot) of the entries that depend on data.
    """

    size: int
    members: np.ndarray
    variables: np.ndarray
    maps: np.ndarray
    varying: tuple[np.ndarray, np.ndarray, np.ndarray]


def _group(blocks: list[Block], members: list[int]) -> Group:
    size = blocks[members[0]].size
    variables = np.stack([np.unique(blocks[k].variable) for k in members])
    maps = np.zeros((len(members), variables.shape[1], size * size))
    varying: list[tuple[np.ndarray, ...]] = []
    for place, k in enumerate(members):
        block = blocks[k]
        local = np.searchsorted(variables[place], block.variable)
        flat = (place * variables.shape[1] + local) * size * size + block.row * size + block.col
        fixed = block.slot < 0
        np.add.at(maps.reshape(-1), flat[fixed], block.value[fixed])
        varying.append((flat[~fixed], block.value[~fixed], block.slot[~fixed]))
    parts = tuple(np.concatenate(part) for part in zip(*varying, strict=True))
    if not len(parts[0]) and (maps == maps[:1]).all():
        maps = maps[:1]
    return Group(size, np.array(members), variables, maps, parts)


class MomentCone:
    """All y in R^N with M_k(y) >= 0 for every block k.

    Args:
        num_variables: N.
        blocks: entries of each block.
    """

    def __init__(self, num_variables: int, blocks: list[Block]) -> None:
        self.num_variables = num_variables
        self.blocks = blocks
        shapes: dict[tuple[int, int], list[int]] = {}
        for k, block in enumerate(blocks):
            shapes.setdefault((block.size, len(np.unique(block.variable))), []).append(k)
        self.groups = [_group(blocks, members) for members in shapes.values()]
        self.order = sum(block.size for block in blocks)

    @cached_property
    def permutation(self) -> np.ndarray:
        """A fill-reducing order of the variables: entry i is the variable eliminated as i-th."""
        pattern = self._pattern(np.arange(self.num_variables))[0]
        pattern.data[:] = -1.0
        pattern.setdiag(pattern.shape[0] + 1.0)
        factor = splu(pattern.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        return np.argsort(factor.perm_c)

    @cached_property
    def scatter(self) -> tuple[sparse.csc_matrix, list[np.ndarray]]:
        """Pattern of the permuted Hessian, and where each local entry goes in it."""
        place = np.empty(self.num_variables, int)
        place[self.permutation] = np.arange(self.num_variables)
        return self._pattern(place)

    def _pattern(self, place: np.ndarray) -> tuple[sparse.csc_matrix, list[np.ndarray]]:
        keys = []
        for group in self.groups:
            local = place[group.variables]
            keys.append(local[:, None, :] + local[:, :, None] * self.num_variables)
        flat = np.concatenate([key.ravel() for key in keys])
        used, positions = np.unique(flat, return_inverse=True)
        columns, rows = np.divmod(used, self.num_variables)
        starts = np.searchsorted(columns, np.arange(self.num_variables + 1))
        shape = (self.num_variables, self.num_variables)
        matrix = sparse.csc_matrix((np.ones(len(used)), rows, starts), shape=shape)
        return matrix, np.split(positions, np.cumsum([key.size for key in keys])[:-1])

    def at(self, data: np.ndarray) -> "BoundCone":
        """The cone with the coefficients of its inequalities filled in."""
        if any(len(group.varying[0]) for group in self.groups):
            return BoundCone(self, data)
        return self._constant

    @cached_property
    def _constant(self) -> "BoundCone":
        return BoundCone(self, np.zeros(0))

    def split(self, grams: Grams) -> list[np.ndarray]:
        """Blocks (s_k, s_k) in the program's order."""
        result: list[np.ndarray] = [np.empty(0)] * len(self.blocks)
        for group, stack in zip(self.groups, grams, strict=True):
            for place, k in enumerate(group.members):
                result[k] = stack[place]
        return result

    def stack(self, blocks: list[np.ndarray]) -> Grams:
        """The inverse of ``split``."""
        return [np.stack([blocks[k] for k in group.members]) for group in self.groups]


class BoundCone:
    """A cone with numbers in it: block matrices of y, their adjoint, and the Hessian."""

    def __init__(self, cone: MomentCone, data: np.ndarray) -> None:
        self.cone = cone
        self.data = data
        self.maps = []
        for group in cone.groups:
            flat, value, slot = group.varying
            if len(flat):
                maps = group.maps.copy()
                np.add.at(maps.reshape(-1), flat, value * data[slot])
                self.maps.append(maps)
            else:
                self.maps.append(group.maps)

    def matrices(self, y: np.ndarray) -> Grams:
        """M_k(y) for y (N,)."""
        result = []
        for group, maps in zip(self.cone.groups, self.maps, strict=True):
            local = y[group.variables][:, None, :]
            result.append((local @ maps).reshape(-1, group.size, group.size))
        return result

    def adjoint(self, grams: Grams) -> np.ndarray:
        """The vector a (N,) with a . y = sum_k <M_k(y), grams_k>."""
        total = np.zeros(self.cone.num_variables)
        for group, maps, gram in zip(self.cone.groups, self.maps, grams, strict=True):
            local = maps @ gram.reshape(len(gram), -1, 1)
            total += np.bincount(
                group.variables.ravel(), local.ravel(), minlength=self.cone.num_variables
            )
        return total

    def local_hessians(self, left: Grams, right: Grams) -> list[np.ndarray]:
        """For every block the (m, m) matrix tr(E_a left E_b right), E_a its derivative in variable a."""
        result = []
        for group, maps, x, z in zip(self.cone.groups, self.maps, left, right, strict=True):
            count, m, s = len(x), group.variables.shape[1], group.size
            stacked = maps.reshape(-1, m * s, s)  # rows (a, i), columns j
            product = stacked @ x  # E_a X
            product = product.reshape(count, m, s, s).swapaxes(-1, -2).reshape(count, m * s, s) @ z
            # now (X E_a)' ... rows (a, j), columns l: X E_a Z transposed on its first index
            product = product.reshape(count, m, s * s)
            result.append(product @ maps.swapaxes(-1, -2))
        return result

    def hessian(self, left: Grams, right: Grams) -> sparse.csc_matrix:
        """The permuted sparse matrix sum_k tr(E_a left_k E_b right_k), (N, N)."""
        pattern, positions = self.cone.scatter
        local = [part.ravel() for part in self.local_hessians(left, right)]
        data = np.bincount(np.concatenate(positions), np.concatenate(local), minlength=pattern.nnz)
        return sparse.csc_matrix((data, pattern.indices, pattern.indptr), shape=pattern.shape)

    def product(self, left: Grams, right: Grams, x: np.ndarray) -> np.ndarray:
        """The same matrix times x (N,), block by block without the matrix."""
        moved = [w @ m @ g for w, m, g in zip(left, self.matrices(x), right, strict=True)]
        return self.adjoint(moved)

    def slot_gradient(self, grams: Grams, y: np.ndarray) -> np.ndarray:
        """d/d data of sum_k <M_k(y; data), grams_k> with y and grams fixed."""
        total = np.zeros_like(self.data)
        for group, gram in zip(self.cone.groups, grams, strict=True):
            flat, value, slot = group.varying
            if len(flat):
                place, entry = np.divmod(flat, group.size**2)
                weight = y[group.variables.ravel()[place]]
                block = place // group.variables.shape[1]
                weight = weight * value * gram.reshape(len(gram), -1)[block, entry]
                total += np.bincount(slot, weight, minlength=len(total))
        return total


class Factor:
    """Sparse LDL'-like factor of a permuted symmetric positive definite matrix (SuperLU, no pivoting)."""

    def __init__(self, cone: MomentCone, matrix: sparse.csc_matrix) -> None:
        self.permutation = cone.permutation
        options = {"SymmetricMode": True, "DiagPivotThresh": 0.0, "Equil": False}
        self.lu = splu(matrix, permc_spec="NATURAL", options=options)

    def apply(self, right: np.ndarray) -> np.ndarray:
        """One solve for right (N,) or (N, r), in the original order of the variables."""
        result = np.empty_like(right)
        result[self.permutation] = self.lu.solve(right[self.permutation])
        return result
