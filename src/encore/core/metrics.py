"""One tidy table of measurements: every number in a figure, a claim or the report is a row of it.

Columns: ``dataset, method, seed, metric, value, unit, better, reason, timing`` and any factor columns
that a paper adds (``k``, ``family`` ...).  ``collect`` adds ``paper`` and splits off the timings.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from encore.core.job import read_parquet, write_json, write_parquet

COLUMNS = ("paper", "dataset", "method", "seed", "metric", "value", "unit", "better", "reason")
BETTER = ("higher", "lower", "")


class Table:
    """Rows of measurements of one paper, collected by a script and written once.

    Args:
        paper: the slug.
    """

    def __init__(self, paper: str) -> None:
        self.paper = paper
        self._frames: list[pd.DataFrame] = []

    def add(
        self,
        *,
        dataset: Any,
        method: Any,
        seed: Any,
        metric: Any,
        value: Any,
        unit: str = "",
        better: str = "",
        reason: Any = "",
        timing: bool = False,
        **factors: Any,
    ) -> None:
        """Add one row, or many where arguments are 1-D arrays of one length (scalars are repeated).

        Raises:
            ValueError: a column of another length, an unknown ``better``, or a value that is not
                finite and has no ``reason``.
        """
        if better not in BETTER:
            raise ValueError(f"better={better!r}; expected one of {BETTER}")
        columns = {
            "paper": self.paper, "dataset": dataset, "method": method, "seed": seed, "metric": metric,
            "value": value, "unit": unit, "better": better, "reason": reason, **factors,
        }  # fmt: skip
        columns = {name: np.ravel(np.asarray(column)) for name, column in columns.items()}
        length = max(column.size for column in columns.values())
        for name, column in columns.items():
            if column.size not in (1, length):
                raise ValueError(f"{name} has {column.size} entries; expected 1 or {length}")
        frame = pd.DataFrame({name: np.resize(column, length) for name, column in columns.items()})
        frame["seed"] = frame["seed"].astype("int64")
        frame["value"] = frame["value"].astype("float64")
        unexplained = ~np.isfinite(frame["value"]) & (frame["reason"].astype(str) == "")
        if unexplained.any():
            row = frame[unexplained].iloc[0]
            raise ValueError(
                f"value is {row['value']} without a reason: {row['metric']} of {row['method']} "
                f"on {row['dataset']}, seed {row['seed']}"
            )
        self._frames.append(frame.assign(timing=bool(timing)))

    def frame(self, timing: bool) -> pd.DataFrame:
        """All rows with (or without) the timing flag, factors that a row lacks being null."""
        frames = [frame for frame in self._frames if frame["timing"].iloc[0] == timing]
        if not frames:
            return pd.DataFrame({name: [] for name in (*COLUMNS, "timing")})
        return pd.concat(frames, ignore_index=True)

    def write(self, path: str | Path) -> None:
        """Write the rows that do not depend on a clock."""
        write_parquet(path, self.frame(timing=False))

    def write_timings(self, path: str | Path) -> None:
        """Write the rows that do."""
        write_parquet(path, self.frame(timing=True))


def read(path: str | Path) -> pd.DataFrame:
    """Read and check a table of metrics.

    Raises:
        ValueError: a missing column, or rows that are not finite and have no reason.
    """
    frame = read_parquet(path)
    if missing := set(COLUMNS) - set(frame.columns):
        raise ValueError(f"{path} lacks the columns {sorted(missing)}")
    if ((~np.isfinite(frame["value"].astype(float))) & (frame["reason"] == "")).any():
        raise ValueError(f"{path} has values that are not finite and give no reason")
    return frame


def collect(paths: Iterable[str | Path]) -> pd.DataFrame:
    """The rows of several tables as one, in a fixed order of rows and columns."""
    frames = [frame for path in sorted(map(str, paths)) if len(frame := read(path))]
    if not frames:
        return pd.DataFrame({name: [] for name in (*COLUMNS, "timing")}).astype(
            {"value": "float64"}
        )
    factors = sorted({name for frame in frames for name in frame.columns} - {*COLUMNS, "timing"})
    table = pd.concat(frames, ignore_index=True)
    return table[[*COLUMNS, "timing", *factors]]


def summary(table: pd.DataFrame) -> dict[str, Any]:
    """Mean value by dataset, metric and method: what ``dvc metrics`` compares."""
    result: dict[str, Any] = {}
    finite = table[np.isfinite(table["value"].astype(float))]
    for keys, value in finite.groupby(["dataset", "metric", "method"])["value"].mean().items():
        dataset, metric, method = map(str, keys)
        result.setdefault(dataset, {}).setdefault(metric, {})[method] = float(value)
    return result


def write_summary(path: str | Path, table: pd.DataFrame) -> None:
    """Write ``summary(table)`` as JSON, rounded to 6 significant digits."""
    write_json(path, summary(table), digits=6)
