"""Shared fixtures: copies of the repository, and calls of its tools in them."""

import os
import runpy
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from encore.core.config import ROOT
from encore.core.data import DataError, Registry, fetch
from encore.core.scaffold import new_paper

TREE = (
    "Snakefile", "config", "workflow", "src", "pyproject.toml", "dvc.yaml", ".dvcignore", ".gitignore",
    "README.md", "tests/conftest.py",
)  # fmt: skip
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info")


@dataclass
class Checkout:
    """A copy of the repository in which commands are run."""

    root: Path

    def run(self, *arguments, check=True, **options):
        """``python -m <arguments>`` with the copy's own package."""
        environment = os.environ | {"PYTHONPATH": str(self.root / "src")}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        run = subprocess.run(
            [sys.executable, "-m", *map(str, arguments)], cwd=self.root, env=environment,
            capture_output=True, text=True, check=False, **options,
        )  # fmt: skip
        if check:
            assert run.returncode == 0, f"{arguments}\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}"
        return run

    def snakemake(self, *arguments, **options):
        """Snakemake with the local profile on two cores."""
        profile = self.root / "workflow/profiles/local"
        return self.run("snakemake", "--profile", profile, "--cores", "2", *arguments, **options)

    def git(self, *arguments):
        """git with an author of its own."""
        who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
        command = ["git", *who, *map(str, arguments)]
        return subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True)

    def commit(self):
        """Put everything into a new git and DVC repository."""
        self.git("init", "--quiet", "--initial-branch", "main")
        self.run("dvc", "init", "--quiet")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "start")


def copy_tree(target):
    """Copy what a run needs of this repository."""
    for name in TREE:
        source, place = ROOT / name, target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, ignore=IGNORED)
        elif source.exists():
            shutil.copy2(source, place)
    return Checkout(target)


def demo_checkout(target):
    """A copy that holds one paper, fresh from the scaffold, and its data set."""
    checkout = copy_tree(target)
    for path in (target / "config/papers").glob("*.yaml"):
        path.unlink()
    registry = yaml.safe_load((target / "config/datasets.yaml").read_text())
    registry["datasets"] = {"digits": registry["datasets"]["digits"]}
    (target / "config/datasets.yaml").write_text(yaml.safe_dump(registry))
    stages = yaml.safe_load((target / "dvc.yaml").read_text())["stages"]
    (target / "dvc.yaml").write_text(yaml.safe_dump({"stages": {"digits": stages["digits"]}}))
    new_paper("demo_paper", target)
    return checkout


@pytest.fixture
def demo(tmp_path):
    """A fresh ``demo_checkout`` for one test."""
    return demo_checkout(tmp_path / "demo")


@pytest.fixture(scope="session")
def finished_demo(tmp_path_factory):
    """A demo checkout whose laptop run is done; tests that change it must copy it."""
    checkout = demo_checkout(tmp_path_factory.mktemp("finished") / "demo")
    checkout.snakemake()
    return checkout


@pytest.fixture
def done(finished_demo, tmp_path):
    """A private copy of the finished demo, times of files kept."""
    shutil.copytree(finished_demo.root, tmp_path / "done")
    return Checkout(tmp_path / "done")


def snakemake(*arguments, directory=ROOT):
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        ROOT / "Snakefile",
        "--directory",
        directory,
    ]
    return subprocess.run(
        [*command, "--profile", ROOT / "workflow/profiles/local", "--cores", "2", *arguments],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip


def smoke_run(folder):
    """All papers at smoke scale in a folder of their own, on the repository's data sets."""
    (ROOT / "data").mkdir(exist_ok=True)
    for name in ("config", "workflow", "src", "data"):
        (folder / name).symlink_to(ROOT / name)
    run = snakemake("--config", "scale=smoke", directory=folder)
    assert run.returncode == 0, (run.stdout + run.stderr)[-6000:]
    return folder / "results/smoke"


@pytest.fixture(scope="session")
def smoke(tmp_path_factory):
    """Results of one smoke run of every paper."""
    return smoke_run(tmp_path_factory.mktemp("smoke"))


@pytest.fixture(scope="session")
def dataset():
    """The folder of a data set of the registry, brought in if a source has it; otherwise skipped."""

    def folder(name):
        mirrors = yaml.safe_load((ROOT / "config/config.yaml").read_text())["mirrors"]
        place = ROOT / "data" / name
        if not all((place / file).exists() for file in Registry.load()[name].files):
            try:
                fetch(name, mirrors, download=False, folder=place)
            except DataError as error:
                pytest.skip(str(error))
        return place

    return folder


class Files(list):
    """Input or output files, by position and by name, as Snakemake hands them to a script."""

    def __init__(self, **named):
        super().__init__(named.values())
        self.__dict__.update(named)


@pytest.fixture
def run_script(tmp_path):
    """Run one workflow script in this process, without Snakemake."""

    def run(script, *, input=None, output=None, params=None, wildcards=None):
        snakemake = SimpleNamespace(
            input=Files(**input or {}),
            output=Files(**output or {}),
            log=[tmp_path / "log.txt"],
            params=SimpleNamespace(**params or {}),
            wildcards=SimpleNamespace(**wildcards or {}),
        )
        path = ROOT / "workflow/scripts" / script
        runpy.run_path(str(path), init_globals={"snakemake": snakemake})

    return run
