"""``encore portfolio select``: a portfolio from two CSV files."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Choose K models that serve as many deployment profiles as possible.")


@app.callback()
def _group() -> None:
    """Choose K models that serve as many deployment profiles as possible."""


@app.command("select")
def select_command(
    archive: Annotated[Path, typer.Argument(help="CSV: a row per model, its name first")],
    profiles: Annotated[
        Path,
        typer.Argument(
            help="CSV: columns such as 'accuracy>=', 'latency<='; empty = unconstrained"
        ),
    ],
    k: Annotated[int, typer.Option(help="number of models to keep")] = 3,
    method: Annotated[str, typer.Option(help="greedy, lazy, exact or stochastic")] = "greedy",
    seed: Annotated[int, typer.Option(help="of the stochastic method")] = 0,
    missing: Annotated[
        str, typer.Option(help="empty cells of the archive: error or infeasible")
    ] = ("error"),
    out: Annotated[
        Path | None, typer.Option(help="JSON file to write; default: the terminal")
    ] = None,
) -> None:
    """Choose K models; a column ``weight`` of the profiles counts some of them more.

    What is better in a column follows from the profiles: a floor (>=) asks for more, a cap (<=) for less.
    """
    from encore.core.job import write_json

    try:
        result = run(archive, profiles, k=k, method=method, seed=seed, missing=missing)
    except (ValueError, TypeError, FileNotFoundError) as error:
        typer.echo(f"encore portfolio: {error}", err=True)
        raise typer.Exit(2) from None
    if out is not None:
        write_json(out, result)
        typer.echo(
            f"{out}: {len(result['names'])} models cover {100 * result['coverage']:.1f} % of the "
            f"feasible profiles, {100 * result['coverage_all']:.1f} % of all"
        )
    else:
        import json

        typer.echo(json.dumps(result, indent=1))


def run(
    archive: Path,
    profiles: Path,
    *,
    k: int,
    method: str = "greedy",
    seed: int = 0,
    missing: str = "error",
) -> dict:
    """What the command writes: the portfolio, and which profiles each kept model serves.

    Raises:
        ValueError: as ``Archive``, ``ProfileSet`` and ``select``.
        FileNotFoundError: no such file.
    """
    import pandas as pd

    from encore.papers.portfolio.archive import Archive
    from encore.papers.portfolio.feasibility import Feasibility
    from encore.papers.portfolio.profiles import ProfileSet
    from encore.papers.portfolio.selection import select

    bounds = pd.read_csv(profiles)
    weight = bounds.pop("weight").to_numpy() if "weight" in bounds.columns else None
    wanted = ProfileSet(bounds, weight)
    models = pd.read_csv(archive, index_col=0)
    sense = {name: direction for name, (direction, _) in wanted.required.items()}
    feasibility = Feasibility.build(Archive(models, sense, missing=missing), wanted)  # type: ignore[arg-type]
    chosen = select(feasibility, k, method=method, seed=seed)  # type: ignore[arg-type]
    serves = feasibility.rows(chosen.indices)
    return chosen.to_dict() | {
        "serves": {
            str(n): row.nonzero()[0].tolist() for n, row in zip(chosen.names, serves, strict=True)
        },
        "unserved": (~serves.any(axis=0)).nonzero()[0].tolist(),
        "infeasible": (~feasibility.feasible).nonzero()[0].tolist(),
    }
