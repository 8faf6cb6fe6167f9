"""The command ``encore``: what there is, what it says, what it costs, and the few verbs around a run."""

import json
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
import yaml

from encore.core import costs, workflow
from encore.core.config import ROOT, SCALES, ConfigError, Study, known_slugs, load_paper, load_study
from encore.core.data import DataError, Registry, fetch
from encore.core.job import DamagedArtifact

app = typer.Typer(
    help="Papers re-performed: pipelines, verdicts, methods.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Data sets: what is here, and bring what is not.", no_args_is_help=True)
app.add_typer(data_app, name="data")

ScaleOption = Annotated[str, typer.Option(help=" | ".join(SCALES))]
SlugArgument = Annotated[str | None, typer.Argument(help="one paper; default: all")]


def main() -> None:
    """Run the command; known mistakes end in one line, not in a traceback."""
    if not Path("Snakefile").exists():
        os.chdir(ROOT)
    try:
        _paper_commands(sys.argv[1:2])
        app()
    except (ConfigError, DataError, DamagedArtifact, workflow.ToolError) as error:
        print(f"encore: {error}", file=sys.stderr)
        sys.exit(2)


def _paper_commands(first: list[str]) -> None:
    """Attach the verbs of the paper that the command line names; other papers stay unimported."""
    slug = first[0].replace("-", "_") if first else ""
    if slug in known_slugs() and find_spec(f"encore.papers.{slug}.cli"):
        app.add_typer(import_module(f"encore.papers.{slug}.cli").app, name=first[0])


def _study(scale: str = "laptop") -> Study:
    config = yaml.safe_load(Path("config/config.yaml").read_text(encoding="utf-8"))
    return load_study(config | {"scale": scale})


def _slugs(slug: str | None) -> list[str]:
    if slug is not None:
        load_paper(slug)
    return [slug] if slug else known_slugs()


def _results(scale: str, slug: str) -> Path:
    if scale not in SCALES:
        raise ConfigError(f"scale {scale!r}; known: {', '.join(SCALES)}")
    return Path("results") / scale / slug


@app.command("list")
def list_papers() -> None:
    """Papers: slug, number of claims, title."""
    for slug in known_slugs():
        paper = load_paper(slug)
        print(f"{slug:<24} {len(paper.claims):>3} claims   {paper.title}")


@app.command()
def claims(
    slug: SlugArgument = None,
    scale: ScaleOption = "laptop",
    as_json: Annotated[bool, typer.Option("--json", help="all records, for programs")] = False,
) -> None:
    """Verdicts with effects and intervals, from the last run or the committed ones."""
    from encore.core.report import read_records, verdict_table

    slugs = _slugs(slug)
    records = {name: read_records(_results(scale, name)) for name in slugs}
    print(json.dumps(records, indent=1) if as_json else verdict_table(scale, Path(), slugs))


@app.command()
def cost(slug: SlugArgument = None) -> None:
    """Measured core-minutes, memory and disk of each scale, before anything runs."""
    from encore.core.config import load_costs

    recorded = load_costs()
    print(
        f"{'paper':<24} {'scale':<7} {'core min':>9} {'memory MB':>10} {'disk MB':>8} {'jobs':>5}"
    )
    for name in _slugs(slug):
        for scale in SCALES:
            known = costs.measure(_results(scale, name)) or recorded.get(name, {}).get(scale)
            if known:
                row = (known[key] for key in ("core_minutes", "memory_mb", "disk_mb", "jobs"))
                print(f"{name:<24} {scale:<7} {'{:>9} {:>10} {:>8} {:>5}'.format(*row)}")
            else:
                print(f"{name:<24} {scale:<7} {'not measured yet':>35}")


@data_app.command("status")
def data_status() -> None:
    """Which data sets are here, which can be had, and what to do about the others."""
    study = _study()
    for name in Registry.load().datasets:
        here = all(Path(path).exists() for path in Registry.load().paths(name))
        source = Registry.load().source(name, study.mirrors, study.download)
        reason = Registry.load().missing(name, study.mirrors, study.download)
        state = "here" if here else f"from {source.kind}" if source else f"BLOCKED: {reason}"
        print(f"{name:<24} {state}")


@data_app.command("fetch")
def data_fetch(
    names: Annotated[list[str] | None, typer.Argument(help="data sets; default: all")] = None,
) -> None:
    """Bring data sets into data/, checked against their checksums; public addresses included."""
    failed = []
    for name in names or Registry.load().datasets:
        try:
            print(f"{name:<24} {fetch(name, _study().mirrors, download=True)}")
        except DataError as error:
            failed.append(name)
            print(f"{name:<24} {error}", file=sys.stderr)
    if failed:
        raise DataError(f"not fetched: {', '.join(failed)}")


@app.command()
def why(target: Annotated[str, typer.Argument(help="a paper, a rule or a file")]) -> None:
    """What would run for a target, and the reason for each job."""
    jobs = workflow.pending(target)
    for name, reason in jobs:
        print(f"{name}\n    {reason}")
    print(f"{len(jobs)} jobs" if jobs else "nothing to do: everything is up to date")


@app.command()
def new(slug: Annotated[str, typer.Argument(help="lower-case name of the new paper")]) -> None:
    """Write every file of a new paper; its tests and smoke run pass at once."""
    from encore.core.report import sync_readme
    from encore.core.scaffold import new_paper

    for path in new_paper(slug):
        print(path.relative_to(ROOT))
    sync_readme(ROOT / "README.md", ROOT)
    print(f"Next: pytest -k {slug}; snakemake -c2 --config scale=smoke -- {slug}; then FILL IN.")


@app.command()
def sync() -> None:
    """After a clone or checkout: pull artifacts from DVC, and Snakemake has nothing to do."""
    workflow.sync()


@app.command()
def record(
    slug: Annotated[str, typer.Argument(help="the paper whose laptop run is finished")],
) -> None:
    """Commit a finished run to DVC, its costs included; refuses unless it is up to date."""
    from encore.core.report import sync_readme

    load_paper(slug)
    workflow.record(slug)
    for scale in SCALES:
        costs.record(slug, scale, _results(scale, slug))
    sync_readme(Path("README.md"), Path())
    print(f"{slug}: recorded; commit dvc.lock, README.md and results/ to git")


@app.command()
def report(scale: ScaleOption = "laptop") -> None:
    """Build the site of verdicts from what is there, and print the table."""
    from encore.core.report import build, verdict_table

    _results(scale, "")
    page = build(scale, Path())
    print(verdict_table(scale, Path()))
    print(f"\nReport: {page.resolve()}")
