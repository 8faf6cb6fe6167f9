"""Exact elimination of linear equalities, so that what is left of the unknowns is free."""

from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from typing import Any

Row = dict[Any, Fraction]


def eliminate(
    rows: Iterable[Row], constant: Hashable, rank: Callable[[Any], Any]
) -> dict[Any, Row]:
    """Solve each row (sum of weights = 0) for one unknown.

    Args:
        rows: {unknown: weight}; the unknown ``constant`` stands for a number that is never solved for.
        rank: the unknown of the largest rank is solved for.

    Returns:
        For every solved unknown its value {unknown or constant: weight} in terms of unsolved ones.

    Raises:
        ValueError: rows that contradict each other.
    """
    solved: dict[Any, Row] = {}
    mentioned: dict[Any, set[Any]] = {}
    for row in rows:
        left = substitute(row, solved)
        names = [name for name in left if name != constant]
        if not names:
            if left:
                raise ValueError(f"equalities contradict each other: {float(left[constant])} = 0")
            continue
        pivot = max(names, key=rank)
        scale = -left.pop(pivot)
        value = {name: weight / scale for name, weight in left.items()}
        for other in mentioned.pop(pivot, ()):
            if pivot in solved[other]:  # it may have cancelled since it was noted
                _add(solved[other], value, solved[other].pop(pivot))
                for name in value:
                    mentioned.setdefault(name, set()).add(other)
        solved[pivot] = value
        for name in value:
            mentioned.setdefault(name, set()).add(pivot)
    return solved


def _add(total: Row, part: Row, factor: Fraction) -> None:
    for name, weight in part.items():
        value = total.get(name, Fraction(0)) + factor * weight
        if value:
            total[name] = value
        else:
            total.pop(name, None)


def substitute(row: Row, solved: dict[Any, Row]) -> Row:
    """The same combination in terms of unsolved unknowns."""
    result: Row = {}
    for name, weight in row.items():
        _add(result, solved.get(name, {name: Fraction(1)}), weight)
    return result


def representable(rows: Iterable[Row]) -> bool:
    """Whether every weight is a float64, so that a certificate may be checked exactly."""
    return all(Fraction(float(weight)) == weight for row in rows for weight in row.values())
