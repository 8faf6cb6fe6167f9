"""Real text that every installation holds: source code, reference topics, docstrings and licences."""

import inspect
import re
from collections.abc import Iterator
from email.message import Message
from importlib import import_module
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from encore.core.job import write_parquet

DOCUMENTED = (
    "numpy", "numpy.fft", "numpy.linalg", "numpy.ma", "numpy.polynomial", "numpy.random",
    "scipy.cluster.hierarchy", "scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.linalg",
    "scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.spatial",
    "scipy.special", "scipy.stats",
)  # fmt: skip
SOURCES = ("calculus", "concrete", "functions", "geometry", "matrices", "ntheory", "series", "sets")
LICENSED = (
    "cvxpy-base", "jinja2", "matplotlib", "networkx", "numpy", "pandas", "pillow", "pyarrow",
    "pyyaml", "safetensors", "scikit-learn", "scipy", "setuptools", "statsmodels", "sympy", "torch",
    "tqdm", "transformers", "typer",
)  # fmt: skip


def generate(folder: Path) -> None:
    """Write ``packaged_text.parquet``: one row a document with ``domain``, ``title`` and ``text``."""
    domains = {
        "code": source_code(), "docstrings": docstrings(), "licences": licences(),
        "topics": topics(),
    }  # fmt: skip
    rows = [(name, *row) for name, documents in domains.items() for row in documents]
    write_parquet(
        folder / "packaged_text.parquet", pd.DataFrame(rows, columns=["domain", "title", "text"])
    )


def source_code() -> Iterator[tuple[str, str]]:
    """Modules of SymPy: path and source, tests left out."""
    root = Path(find_spec("sympy").submodule_search_locations[0])
    for package in SOURCES:
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "tests" not in path.parts and "benchmarks" not in path.parts and text.strip():
                yield path.relative_to(root.parent).as_posix(), text


def docstrings() -> Iterator[tuple[str, str]]:
    """Functions and classes of NumPy and SciPy: name with signature, and docstring; each text once."""
    seen = set()
    for name in DOCUMENTED:
        module = import_module(name)
        for member in sorted(set(dir(module)) - {"test"}):
            item = getattr(module, member)
            text = inspect.getdoc(item) if callable(item) and member[0] != "_" else None
            if text and len(text) > 100 and text not in seen:
                seen.add(text)
                yield f"{name}.{member}{_signature(item)}", text


def _signature(item: object) -> str:
    try:
        found = str(inspect.signature(item))
    except (TypeError, ValueError):
        return ""
    return "" if " at 0x" in found else found


def licences() -> Iterator[tuple[str, str]]:
    """Licence files of installed distributions: what the metadata calls the licence, and the text."""
    seen = set()
    for name in LICENSED:
        found = distribution(name)
        called = _licence_name(found.metadata)
        for file in sorted(found.files or [], key=str):
            if re.search(r"(?i)licen[cs]e|copying|notice", file.name) and file.suffix != ".py":
                text = file.locate().read_text(encoding="utf-8", errors="replace").strip()
                if text and text not in seen:
                    seen.add(text)
                    yield f"{name}: {called}", text


def _licence_name(metadata: Message) -> str:
    """The SPDX expression, else the trove classifier, else a short name; all stand in the metadata."""
    classified = [c for c in metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    short = metadata.get("License") or ""
    return (
        metadata.get("License-Expression")
        or (classified[0].split(" :: ")[-1] if classified else "")
        or (short if len(short) < 40 else "unknown")
    )


def topics() -> Iterator[tuple[str, str]]:
    """Python's own help topics: title and text."""
    yield from sorted(import_module("pydoc_data.topics").topics.items())
