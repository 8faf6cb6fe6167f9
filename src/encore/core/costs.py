"""What a run costs, from the benchmark files that its jobs left."""

import json
from pathlib import Path
from typing import Any

from encore.core.config import load_costs
from encore.core.job import write_json

FILE = Path("results/costs.json")


def measure(results: Path) -> dict[str, float]:
    """Cost of the jobs whose benchmark files lie under ``results`` (one paper at one scale).

    Returns:
        ``core_minutes`` (times of all jobs added up: they use one core each), ``memory_mb`` (largest
        resident set of a job), ``disk_mb`` (size of all artifacts), ``jobs``; empty if nothing was run.
    """
    rows = [
        json.loads(line)
        for path in sorted((results / "benchmarks").rglob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    if not rows:
        return {}
    disk = sum(path.stat().st_size for path in results.rglob("*") if path.is_file())
    return {
        "core_minutes": round(sum(_number(row, "s") for row in rows) / 60, 2),
        "memory_mb": round(max(_number(row, "max_rss") for row in rows)),
        "disk_mb": round(disk / 1e6, 1),
        "jobs": len(rows),
    }


def _number(row: dict[str, Any], name: str) -> float:
    """A short job may have no sample of a quantity."""
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def record(slug: str, scale: str, results: Path) -> None:
    """Put the measured cost of a run into ``results/costs.json``."""
    if cost := measure(results):
        costs = load_costs()
        costs.setdefault(slug, {})[scale] = cost
        write_json(FILE, costs)
