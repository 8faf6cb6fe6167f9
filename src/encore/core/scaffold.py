"""Paper 39: write every file that a paper needs, in a state in which its tests and smoke run pass."""

import re
from pathlib import Path

from encore.core.config import ConfigError, known_slugs
from encore.core.sources import ROOT

TEMPLATES = Path(__file__).parent / "templates/new"
PLACES = {
    "config.yaml": "config/papers/{slug}.yaml",
    "settings.py": "src/encore/settings/{slug}.py",
    "init.py": "src/encore/papers/{slug}/__init__.py",
    "method.py": "src/encore/papers/{slug}/method.py",
    "baselines.py": "src/encore/papers/{slug}/baselines.py",
    "README.md": "src/encore/papers/{slug}/README.md",
    "rules.smk": "workflow/rules/{slug}.smk",
    "prepare.py": "workflow/scripts/{slug}/prepare.py",
    "evaluate.py": "workflow/scripts/{slug}/evaluate.py",
    "figures.py": "workflow/scripts/{slug}/figures.py",
    "test_method.py": "tests/papers/{slug}/test_method.py",
}


def new_paper(slug: str, root: Path = ROOT) -> list[Path]:
    """Write the files of a new paper and append its stage to dvc.yaml.

    Returns:
        The files that were written.

    Raises:
        ConfigError: the slug is not a lower-case Python identifier, or is taken.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", slug):
        raise ConfigError(f"slug {slug!r}: expected lower-case letters, digits and underscores")
    if slug in known_slugs():
        raise ConfigError(f"slug {slug!r} is taken")
    written = []
    for template, place in PLACES.items():
        path = root / place.format(slug=slug)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (TEMPLATES / template).read_text(encoding="utf-8").replace("PAPER_SLUG", slug)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    pipeline = root / "dvc.yaml"
    stage = (TEMPLATES / "stage.yaml").read_text(encoding="utf-8").replace("PAPER_SLUG", slug)
    head, marker, tail = pipeline.read_text(encoding="utf-8").partition("\nplots:\n")
    pipeline.write_text(f"{head.rstrip()}\n{stage}{marker}{tail}", encoding="utf-8")
    return [*written, pipeline]
