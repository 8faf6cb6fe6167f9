"""The lock: every dependency pinned, and the trap that breaks torch beside it absent."""

import re
import tomllib
from importlib.util import find_spec

from encore.core.config import ROOT


def names(lines):
    return {re.split(r"[=<>\[ ;@]", line.strip())[0].lower().replace("_", "-") for line in lines}


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = names(project["dependencies"])
    wanted |= names(name for extra in project["optional-dependencies"].values() for name in extra)
    pins = [
        line
        for line in (ROOT / "requirements.lock").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    assert all("==" in line and "+" not in line for line in pins)  # "+cpu" is one index's own
    assert wanted <= names(pins)


def test_torchvision_stays_out():
    """Its build breaks beside torch 2.13.0 (torchvision::nms), and then transformers fails to import."""
    assert "torchvision" not in names((ROOT / "requirements.lock").read_text().splitlines())
    assert find_spec("torchvision") is None
