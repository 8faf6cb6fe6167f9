"""Imports run downwards, closures find what a script runs, and importing encore costs nothing."""

import ast
import subprocess
import sys

import pytest

from encore.core import sources
from encore.core.config import ROOT, known_slugs

PACKAGE = ROOT / "src/encore"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "templates" not in path.parts)


def layer(path):
    """core, settings, papers.<slug>, or the name of a shared area."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return f"papers.{parts[1]}" if parts[0] == "papers" and len(parts) > 2 else parts[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_run_downwards(path):
    """core and settings import nothing above; a paper never imports another paper."""
    mine = layer(path)
    for imported in map(layer, sources.imports(path)):
        if mine == "core":
            assert imported == "core"
        elif mine == "settings":
            assert imported in ("core", "settings")
        elif mine.startswith("papers."):
            assert imported == mine or not imported.startswith(("papers.", "settings"))
        elif mine not in ("__main__", "papers"):
            assert not imported.startswith(("papers.", "settings"))


def test_scripts_import_only_the_library():
    for path in (ROOT / "workflow/scripts").rglob("*.py"):
        for imported in map(layer, sources.imports(path)):
            slug = path.parent.name
            assert not imported.startswith("papers.") or imported == f"papers.{slug}", path


def test_the_closure_follows_imports_of_imports(demo):
    run = demo.run("encore.core.sources", check=False)
    assert run.returncode == 0
    found = sources.code("shared/judge.py")
    assert "src/encore/core/claims.py" in found
    assert "src/encore/core/intervals.py" in found  # through claims
    assert "src/encore/core/figures.py" not in found


def _imports_anywhere(path):
    return {
        alias.name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in (
            node.names if isinstance(node, ast.Import) else [ast.alias(node.module or "")]
        )
    }


@pytest.mark.parametrize("slug", known_slugs())
def test_settings_import_nothing_heavy(slug):
    heavy = {"torch", "numpy", "scipy", "pandas", "sklearn", "matplotlib"}
    assert not heavy & _imports_anywhere(PACKAGE / f"settings/{slug}.py")


def test_importing_encore_loads_nothing():
    program = "import sys, encore, encore.papers; print(len([m for m in sys.modules if 'encore' in m]), 'numpy' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["2", "False"]


def test_the_snakefile_loads_no_torch():
    program = (
        "import sys, yaml; from encore.core.config import Study, load_study;"
        "study = load_study({}); [study.settings(slug) for slug in study.slugs];"
        "print('torch' in sys.modules, 'scipy' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert run.stdout.split() == ["False", "False"]
