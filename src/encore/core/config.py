"""Typed configuration: what config/ may say, and what the workflow reads from it."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from encore.core.sources import ROOT

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[str, ...] = get_args(Scale)
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Where = dict[str, Any]


class ConfigError(ValueError):
    """A configuration file or option says something that Encore does not understand; one line."""


class Strict(BaseModel):
    """A section in which a misspelt key is an error."""

    model_config = ConfigDict(extra="forbid")


# -- claims ---------------------------------------------------------------------------------------


class Check(Strict):
    """One comparison on the table of metrics."""

    name: str = ""
    metric: str
    where: Where = {}
    cluster: list[str] = []


class Bound(Check):
    """Rows, or a statistic of them, on one side of a value."""

    compare: Literal["bound"]
    side: Literal["<", "<=", ">", ">="]
    value: float
    against: float | None = None
    of: Literal["rows", "mean", "median", "share"] = "mean"


class Arms(Check):
    """Two arms of a comparison, paired by columns (no columns: unpaired)."""

    a: Where
    b: Where
    pair: list[str] = []


class Difference(Arms):
    """``a - b`` on one side of a value."""

    compare: Literal["difference"]
    side: Literal["<", "<=", ">", ">="]
    value: float = 0.0
    against: float | None = None
    of: Literal["mean", "median"] = "mean"


class Ratio(Arms):
    """``a / b`` on one side of a value."""

    compare: Literal["ratio"]
    side: Literal["<", "<=", ">", ">="]
    value: float = 1.0
    against: float | None = None
    of: Literal["gmean", "median", "of_means"] = "gmean"


class Equivalence(Arms):
    """``a`` and ``b`` differ by less than a margin."""

    compare: Literal["equivalence"]
    margin: float = Field(gt=0)


class NonInferiority(Arms):
    """``a`` is worse than ``b`` by less than a margin."""

    compare: Literal["non_inferiority"]
    margin: float = Field(ge=0)
    better: Literal["higher", "lower"]


class Trend(Check):
    """Slope, log-log slope or rank correlation of the metric over a factor."""

    compare: Literal["trend"]
    over: str
    statistic: Literal["slope", "loglog", "spearman"]
    side: Literal["<", "<=", ">", ">="] | None = None
    value: float = 0.0
    against: float | None = None
    within: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _one_region(self) -> "Trend":
        if (self.side is None) == (self.within is None):
            raise ValueError("a trend needs either side (with value) or within")
        return self


class Order(Check):
    """One cell of a factor is the best of all cells, up to a tolerance."""

    compare: Literal["order"]
    cells: str
    target: Any
    within: float = Field(default=0.0, ge=0)
    better: Literal["higher", "lower"]


class Count(Check):
    """How many groups of rows lie on one side of a value."""

    compare: Literal["count"]
    side: Literal["<", "<=", ">", ">="]
    value: float
    group: list[str] = Field(min_length=1)
    at_least: int = Field(ge=1)
    against: int | None = None


class Describe(Check):
    """The number and its interval, without a verdict."""

    compare: Literal["describe"]


AnyCheck = Annotated[
    Bound | Difference | Ratio | Equivalence | NonInferiority | Trend | Order | Count | Describe,
    Field(discriminator="compare"),
]


class Claim(Strict):
    """One sentence of an abstract as a record that arithmetic decides."""

    id: str = Field(pattern=r"^[a-z0-9]+([_-][a-z0-9]+)*$")
    text: str
    kind: Literal["theorem", "empirical", "speed"]
    datasets: list[str] = Field(min_length=1, description="judged on each, the main one first")
    paper: str | None = None
    refuted_if: str = ""
    scales: list[Scale] = ["laptop", "paper"]
    note: str = ""
    checks: list[AnyCheck] = Field(min_length=1)


# -- papers ---------------------------------------------------------------------------------------


class Figure(Strict):
    """A figure that the paper's rules draw; ``timed`` ones lie under ``timings/``."""

    name: str = Field(pattern=r"^[a-z0-9_-]+$")
    title: str
    caption: str
    timed: bool = False


class Choice(Strict):
    """A decision where the abstract is silent."""

    about: str
    chosen: str
    why: str
    otherwise: str = ""


class TunedOn(Strict):
    """Which seeds or data settings were tuned on."""

    seeds: list[int] = []
    what: str


class Paper(Strict):
    """``config/papers/<slug>.yaml``; the settings of each scale are checked by the paper's own model."""

    title: str
    summary: str
    citation: str = ""
    synthetic: list[Name] = []
    tuned_on: TunedOn | None = None
    scales: dict[Scale, dict[str, Any]]
    figures: list[Figure] = []
    choices: list[Choice] = []
    claims: list[Claim] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> "Paper":
        if missing := set(SCALES) - set(self.scales):
            raise ValueError(f"scales lacks {sorted(missing)}")
        ids = [claim.id for claim in self.claims]
        if repeated := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"claims repeats the ids {sorted(repeated)}")
        known = set(self.synthetic).union(*(s.get("datasets", []) for s in self.scales.values()))
        for claim in self.claims:
            if unknown := set(claim.datasets) - known:
                raise ValueError(
                    f"claim {claim.id} is on {sorted(unknown)}; known: {sorted(known)}"
                )
        if self.tuned_on:
            for scale in ("laptop", "paper"):
                used = set(self.scales[scale].get("seeds", []))
                if both := used & set(self.tuned_on.seeds):
                    raise ValueError(
                        f"{scale} judges on the seeds {sorted(both)} that were tuned on"
                    )
        return self


class Study(Strict):
    """``config/config.yaml``: what one run of Snakemake covers and where data may come from."""

    scale: Scale = "laptop"
    papers: list[str] | Literal["all"] = "all"
    mirrors: list[str] = Field(default=[], description="folders that hold <dataset>/<file>")
    download: bool = Field(default=False, description="may the workflow itself fetch public URLs?")

    @cached_property
    def slugs(self) -> list[str]:
        """Papers of this run, the cheapest first."""
        known = known_slugs()
        if self.papers == "all":
            return sorted(known, key=lambda slug: (laptop_cost(slug), slug))
        if unknown := [slug for slug in self.papers if slug not in known]:
            raise ConfigError(f"papers: unknown {_hint(unknown[0], known)}")
        return list(self.papers)

    def settings(self, slug: str) -> dict[str, Any]:
        """The settings of one paper at this run's scale, as its rules see them."""
        from encore.core.data import Registry

        paper = load_paper(slug)
        settings = paper.scales[self.scale]
        registry = Registry.load()
        blocked = {
            name: reason
            for name in settings["datasets"]
            if (reason := registry.missing(name, self.mirrors, self.download))
        }
        return settings | {
            "slug": slug,
            "scale": self.scale,
            "datasets": [name for name in settings["datasets"] if name not in blocked],
            "blocked": blocked,
            "synthetic": paper.synthetic,
            "figures": [figure.name for figure in paper.figures if not figure.timed],
            "timed_figures": [figure.name for figure in paper.figures if figure.timed],
            "claims": [claim.model_dump() for claim in paper.claims],
        }


def known_slugs() -> list[str]:
    """Papers that have a configuration file."""
    return sorted(path.stem for path in (ROOT / "config/papers").glob("*.yaml"))


def laptop_cost(slug: str) -> float:
    """Core-minutes of the recorded laptop run; papers never recorded come last."""
    return float(load_costs().get(slug, {}).get("laptop", {}).get("core_minutes", float("inf")))


def load_costs() -> dict[str, Any]:
    """``results/costs.json``: measured costs by paper and scale."""
    path = ROOT / "results/costs.json"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}


def load_study(config: Mapping[str, Any]) -> Study:
    """Check the options of one run.

    Raises:
        ConfigError: unknown key, scale or paper.
    """
    try:
        study = Study.model_validate(dict(config))
    except ValidationError as error:
        raise ConfigError(f"config/config.yaml or --config: {explain(error, Study)}") from None
    _ = study.slugs
    return study


def load_paper(slug: str) -> Paper:
    """Read and check one paper's configuration.

    Raises:
        ConfigError: one line that names the file, the key and what was expected.
    """
    path = ROOT / "config/papers" / f"{slug}.yaml"
    if not path.exists():
        raise ConfigError(f"unknown paper {_hint(slug, known_slugs())}")
    file = path.relative_to(ROOT)
    model = import_module(f"encore.settings.{slug}").Settings
    try:
        paper = Paper.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise ConfigError(f"{file}: {explain(error, Paper)}") from None
    for scale, settings in paper.scales.items():
        try:
            paper.scales[scale] = model.model_validate(settings).model_dump()
        except ValidationError as error:
            raise ConfigError(f"{file}: scales.{scale}: {explain(error, model)}") from None
    return paper


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """All complaints of a validation as one line; an unknown key comes with the known ones."""
    return "; ".join(_explain_one(item, model) for item in error.errors())


def _explain_one(item: Any, model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        known = _fields(model, item["loc"][:-1])
        parent = ".".join(str(part) for part in item["loc"][:-1])
        return f"{parent + ': ' if parent else ''}unknown key {_hint(str(item['loc'][-1]), known)}"
    message = re.sub(r"^Value error, ", "", item["msg"])
    scalar = isinstance(item["input"], str | int | float | None)
    found = f" (found {item['input']!r})" if scalar and item["type"] != "value_error" else ""
    return f"{where + ': ' if where else ''}{message}{found}"


def _fields(model: Any, path: tuple[Any, ...]) -> list[str]:
    """Known keys of the section at ``path``, as far as the models tell."""
    for part in path:
        models = [m for m in _models(model) if isinstance(part, str)]
        found = [m.model_fields[part].annotation for m in models if part in m.model_fields]
        if found:
            model = found[0]
        elif isinstance(part, str):  # the tag of a discriminated union, or a key of a dict
            tagged = [
                m
                for m in models
                if part in get_args(getattr(m.model_fields.get("compare"), "annotation", None))
            ]
            model = tagged[0] if tagged else model
    return sorted({name for m in _models(model) for name in m.model_fields})


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _hint(word: str, known: list[str]) -> str:
    close = get_close_matches(word, known, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    return f"{word!r}{guess}; known: {', '.join(known) or 'none'}"
