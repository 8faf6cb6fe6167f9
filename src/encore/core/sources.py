"""Which source files does a script run?  The answer is declared as an input of its rule."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "src"


@cache
def code(script: str) -> list[str]:
    """Paths of a workflow script and of every encore module that it imports, directly or not.

    Args:
        script: path under ``workflow/scripts``, such as ``"louver/evaluate.py"``.

    Returns:
        Sorted paths relative to the repository's root.

    Raises:
        FileNotFoundError: no such script.
    """
    return closure(ROOT / "workflow/scripts" / script)


def closure(start: Path) -> list[str]:
    """The same for any Python file of the repository."""
    found: set[Path] = set()
    queue = [start]
    while queue:
        path = queue.pop()
        if path not in found:
            found.add(path)
            queue.extend(imports(path))
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


@cache
def imports(path: Path) -> tuple[Path, ...]:
    """Files of encore that ``path`` imports directly, parent packages included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.update({node.module}, (f"{node.module}.{alias.name}" for alias in node.names))
    return tuple(
        file
        for name in sorted(names)
        if name.split(".")[0] == "encore"
        for file in module_files(name)
    )


def module_files(name: str) -> Iterator[Path]:
    """Files that ``import name`` executes: each parent package, then the module itself."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        base = PACKAGE.joinpath(*parts[:i])
        for file in (base / "__init__.py", base.with_suffix(".py")):
            if file.is_file() and file.stat().st_size:
                yield file
