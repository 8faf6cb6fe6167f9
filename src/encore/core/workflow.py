"""Calls of Snakemake, DVC and git, each as a module or command of the running environment."""

import os
import re
import subprocess
import sys
from pathlib import Path

from encore.core.config import ConfigError


class ToolError(RuntimeError):
    """Snakemake, DVC or git failed; the message is its own last lines."""


def environment() -> dict[str, str]:
    """The environment in which ``python`` and console scripts are those of this interpreter."""
    folder = str(Path(sys.executable).parent)
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}


def call(*arguments: str, show: bool = False) -> str:
    """Run ``python -m <arguments>``; what it printed, or ``ToolError`` with the end of it."""
    command = [sys.executable, "-m", *arguments]
    run = subprocess.run(
        command, capture_output=not show, text=True, env=environment(), check=False
    )
    printed = "" if show else run.stdout + run.stderr
    if run.returncode:
        raise ToolError(
            "\n".join(printed.splitlines()[-15:]) or f"{' '.join(arguments[:3])} failed"
        )
    return printed


def snakemake(*arguments: str, show: bool = False) -> str:
    """Run Snakemake with the local profile."""
    profile = os.environ.get("SNAKEMAKE_PROFILE", "workflow/profiles/local")
    return call("snakemake", "--profile", profile, *arguments, show=show)


def dvc(*arguments: str, show: bool = False) -> str:
    """Run DVC."""
    return call("dvc", *arguments, show=show)


def pending(*targets: str) -> list[tuple[str, str]]:
    """Jobs that Snakemake would run for the targets, with its reasons: (rule and wildcards, reason)."""
    printed = call(
        "snakemake", "--dry-run", "--cores", "1", "--rerun-triggers", "mtime", "input", "params",
        "software-env", "--", *targets,
    )  # fmt: skip
    jobs = []
    for block in re.split(r"\n\s*\n|\n(?=\[)", printed):
        if rule := re.search(r"^(?:local)?rule (\S+):", block, flags=re.MULTILINE):
            reason = re.search(r"^ +reason: (.*)", block, flags=re.MULTILINE)
            wildcards = re.search(r"^ +wildcards: (.*)", block, flags=re.MULTILINE)
            name = rule[1] + (f" ({wildcards[1]})" if wildcards else "")
            jobs.append((name, reason[1] if reason else "collects other targets"))
    return jobs


def record(slug: str) -> None:
    """Commit a finished laptop run to DVC.

    Raises:
        ConfigError: Snakemake still has work to do for it.
    """
    jobs = [job for job in pending(slug) if job[0] != slug]
    if jobs:
        name, reason = jobs[0]
        raise ConfigError(
            f"{slug} is not up to date: {len(jobs)} jobs would run, {name} first ({reason}); run `snakemake {slug}`"
        )
    dvc("commit", "--force", *_stages(slug))


def _stages(slug: str) -> list[str]:
    """The stage of a paper and of the data sets that it uses."""
    import yaml

    stages = yaml.safe_load(Path("dvc.yaml").read_text(encoding="utf-8"))["stages"]
    used = [dep.split("/")[1] for dep in stages[slug]["deps"] if dep.startswith("data/")]
    return [*(name for name in used if Path("data", name).exists()), slug]


def sync() -> None:
    """Pull artifacts, build the report, then tell Snakemake that they are what its rules would make."""
    from encore.core.report import build

    dvc("pull", show=True)
    build("laptop")
    snakemake("--touch", "--forceall", "--quiet", "all", show=True)
