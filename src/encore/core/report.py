"""Verdicts for people: a static offline site, a table for the terminal, a table for README.md.

Everything is made from files that a run left (``results/<scale>/<slug>/``) and from ``config/``; the
same files give the same bytes.  Pages load nothing from elsewhere and can be read without JavaScript.
"""

import math
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from encore.core import config
from encore.core.claims import (
    BLOCKED,
    CONTRADICTED,
    NOT_JUDGED,
    REPRODUCED,
    UNDECIDED,
    VERDICTS,
    headline,
)
from encore.core.config import SCALES, Claim, Paper, known_slugs, load_paper
from encore.core.data import Registry
from encore.core.job import read_json, replacing

TEMPLATES = Path(__file__).parent / "templates/report"
ASSETS = ("style.css", "app.js")
NOT_RUN = "not run"
MEANING = {
    REPRODUCED: "The whole interval lies where the claim holds.",
    UNDECIDED: "The interval reaches over the edge: more seeds or more data would tell.",
    CONTRADICTED: "The interval lies where the claim fails.",
    NOT_JUDGED: "Described only, or decided at another scale.",
    BLOCKED: "Data or an endpoint cannot be reached here; the page says what to fetch.",
    NOT_RUN: "No results yet; the page has the command.",
}
MARKS = {
    REPRODUCED: "✓", UNDECIDED: "?", CONTRADICTED: "✗", NOT_JUDGED: "–", BLOCKED: "!", NOT_RUN: "·",
}  # fmt: skip
MARKERS = ("<!-- verdicts -->", "<!-- /verdicts -->")


# -- what a page shows ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Picture:
    """A figure of a paper; ``source`` is None as long as it is not drawn."""

    name: str
    title: str
    caption: str
    timed: bool
    source: Path | None
    width: int
    height: int


@dataclass(frozen=True)
class Judged:
    """A claim of the configuration with the records that a run gave it (none: not run)."""

    claim: Claim
    records: list[dict[str, Any]]

    @property
    def head(self) -> dict[str, Any] | None:
        """The record that stands for the claim."""
        return headline(self.records) if self.records else None

    @property
    def verdict(self) -> str:
        """One of ``VERDICTS``, or ``not run``."""
        return self.head["verdict"] if self.head else NOT_RUN

    @property
    def text(self) -> str:
        """The sentence that was judged."""
        return self.head["text"] if self.head else self.claim.text

    @property
    def others(self) -> list[dict[str, Any]]:
        """Records of further data sets."""
        return [r for r in self.records if r is not self.head and r is not self.missing_main]

    @property
    def missing_main(self) -> dict[str, Any] | None:
        """The blocked record of the main data set, where another one decided in its place."""
        first = self.records[0] if self.records else None
        return first if first and first is not self.head and first["verdict"] == BLOCKED else None

    @property
    def decisive(self) -> dict[str, Any] | None:
        """The check that the verdict rests on: the first that came out like the claim."""
        checks = self.head["checks"] if self.head else []
        alike = [check for check in checks if check["verdict"] == self.verdict]
        return next(iter(alike or checks), None)

    @property
    def finding(self) -> str:
        """Effect and interval of the decisive check, or why there are none."""
        if self.decisive is None:
            return self.head["reason"] if self.head else ""
        return f"{self.decisive['name']}: {effect_text(self.decisive)}"


@dataclass(frozen=True)
class Entry:
    """One paper as the site shows it."""

    slug: str
    scale: str
    paper: Paper
    judged: list[Judged]
    pictures: list[Picture]
    means: dict[str, Any]
    costs: dict[str, Any]
    has_table: bool

    @property
    def tally(self) -> dict[str, int]:
        """Number of claims by verdict, ``not run`` included."""
        return tally(self.judged)

    @property
    def was_run(self) -> bool:
        """Whether any claim has a record."""
        return any(item.records for item in self.judged)

    @property
    def is_drawn(self) -> bool:
        """Whether any figure is there."""
        return any(picture.source for picture in self.pictures)

    @property
    def command(self) -> str:
        """Runs this paper at this scale."""
        return f"snakemake --cores 2 --config scale={self.scale} -- {self.slug}"

    @property
    def minutes(self) -> float | None:
        """Measured core-minutes at this scale."""
        return self.costs.get(self.scale, {}).get("core_minutes")

    @property
    def settings(self) -> list[tuple[str, list[str]]]:
        """Every setting with its value at each scale."""
        flat = [flatten(self.paper.scales[scale]) for scale in SCALES]  # type: ignore[index]
        names = dict.fromkeys(name for settings in flat for name in settings)
        return [(name, [settings.get(name, "") for settings in flat]) for name in names]

    @property
    def datasets(self) -> list[tuple[str, Any]]:
        """Data sets of this scale with their entries in the registry, then those made on the way."""
        registry = Registry.load().datasets
        used = [*self.paper.scales[self.scale]["datasets"], *self.paper.synthetic]  # type: ignore[index]
        return [(name, registry.get(name)) for name in dict.fromkeys(used)]


def tally(judged: Iterable[Judged]) -> dict[str, int]:
    """Number of claims by verdict, ``not run`` included."""
    found = [item.verdict for item in judged]
    return {verdict: found.count(verdict) for verdict in (*VERDICTS, NOT_RUN)}


def read_entry(slug: str, scale: str, root: Path) -> Entry:
    """Gather what a run left of one paper; what is not there is empty.

    Raises:
        ConfigError: the paper's configuration is not valid.
        DamagedArtifact: a file of the results cannot be read.
    """
    paper = load_paper(slug)
    folder = root / "results" / scale / slug
    records = read_records(folder)
    return Entry(
        slug=slug,
        scale=scale,
        paper=paper,
        judged=[
            Judged(claim, [record for record in records if record["id"] == claim.id])
            for claim in paper.claims
        ],
        pictures=[_picture(figure, folder) for figure in paper.figures],
        means=_read(folder / "metrics.json", default={}),
        costs=_read(root / "results/costs.json", default={}).get(slug, {}),
        has_table=(folder / "metrics.parquet").exists(),
    )


def read_records(folder: Path) -> list[dict[str, Any]]:
    """Records of claims.json and speed.json of one paper's results, as far as they are there."""
    names = ("claims.json", "speed.json")
    return [record for name in names for record in _read(folder / name, default=[])]


def _read(path: Path, default: Any) -> Any:
    return read_json(path) if path.exists() else default


def _picture(figure: config.Figure, folder: Path) -> Picture:
    path = folder / ("timings" if figure.timed else "figures") / f"{figure.name}.svg"
    drawn = path.exists()
    width, height = _size(path) if drawn else (0, 0)
    return Picture(
        figure.name,
        figure.title,
        figure.caption,
        figure.timed,
        path if drawn else None,
        width,
        height,
    )


def _size(path: Path) -> tuple[int, int]:
    """Width and height of an SVG file in CSS pixels, from its viewBox; zeros if it has none."""
    root = next(ElementTree.iterparse(path, events=("start",)))[1]
    box = re.split(r"[\s,]+", root.get("viewBox", "").strip())
    return (round(float(box[2]) * 4 / 3), round(float(box[3]) * 4 / 3)) if len(box) == 4 else (0, 0)


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as ``outer.inner: text``."""
    flat: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value_text(value)
    return flat


# -- words and numbers ----------------------------------------------------------------------------

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None, digits: int = 4) -> str:
    """A number for reading: ``digits`` significant digits, a true minus, powers of ten where they help."""
    if value is None:
        return "none"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        power = f"10{str(int(exponent)).translate(_SUPERSCRIPT)}"
        text = f"{mantissa}×{power}" if mantissa.lstrip("-") != "1" else mantissa[:-1] + power
    elif size >= 1000:
        text = f"{value:,.0f}".replace(",", "\u202f")
    else:
        text = f"{value:.{digits}g}"
    return text.replace("-", "−", 1) if value < 0 else text


def value_text(value: Any) -> str:
    """A setting in words: runs of integers are shortened, nothing is quoted."""
    if value is None:
        return "not set"
    if value == [] or value == {}:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        whole = all(isinstance(item, int) and not isinstance(item, bool) for item in value)
        return runs(value) if whole else ", ".join(map(value_text, value))
    return number(value, 6) if isinstance(value, float) else str(value)


def runs(values: Iterable[int]) -> str:
    """Integers as text, three or more in a row shortened: ``0, 100–104``."""
    groups: list[list[int]] = []
    for value in values:
        if groups and value == groups[-1][-1] + 1:
            groups[-1].append(value)
        else:
            groups.append([value])
    return ", ".join(
        f"{group[0]}–{group[-1]}" if len(group) > 2 else ", ".join(map(str, group))
        for group in groups
    )


def unit_of(check: Mapping[str, Any]) -> str:
    """The unit of an effect: ratios are factors; slopes and counts have no simple one."""
    if check["compare"] == "ratio":
        return "×"
    return "" if check["compare"] in ("trend", "count") else check["unit"]


def with_unit(text: str, unit: str) -> str:
    """``3×``, ``5 %``, ``0.2 s``, ``0.5``."""
    return text if not unit else f"{text}{unit}" if unit == "×" else f"{text}\u00a0{unit}"


def interval_text(check: Mapping[str, Any]) -> str:
    """``[0.1, 0.2]``; one open end is infinite, two of them are no interval at all."""
    low, high = check["interval"]
    if low is None and high is None:
        return "no interval"
    if low == high == check["effect"]:
        return "no spread"
    left = "−∞" if low is None else number(low)
    return f"[{left}, {'∞' if high is None else number(high)}]"


def effect_text(check: Mapping[str, Any]) -> str:
    """Effect with unit and interval in one line."""
    return f"{with_unit(number(check['effect']), unit_of(check))} {interval_text(check)}"


def region_text(check: Mapping[str, Any], asked: Any = None) -> str:
    """Where the claim holds, in words; ``asked`` (its configuration) tells whether the edge belongs to it."""
    if check["holds"] is None:
        return "described only"
    low, high = check["holds"]
    unit = unit_of(check)
    if low is not None and high is not None:
        return f"holds from {number(low)} to {with_unit(number(high), unit)}"
    if low is None and high is None:
        return "holds everywhere"
    closed = check["compare"] in ("count", "order") or getattr(asked, "side", None) in ("<=", ">=")
    side = (
        ("at least" if closed else "above") if high is None else ("at most" if closed else "below")
    )
    return f"holds {side} {with_unit(number(low if high is None else high), unit)}"


def where_text(where: Mapping[str, Any]) -> str:
    """A filter on columns in words: ``method ours, k 2 or 3``."""
    return ", ".join(f"{name} {_either(value)}" for name, value in where.items())


def _either(value: Any) -> str:
    return " or ".join(map(value_text, value)) if isinstance(value, list) else value_text(value)


def criterion(check: Mapping[str, Any], asked: Any = None) -> str:
    """What a check compares, in words; ``asked`` is its entry in the configuration, if known."""
    among = f" (only {where_text(check['where'])})" if check["where"] else ""
    if asked is None or asked.compare != check["compare"]:
        return f"{check['compare'].replace('_', ' ')} of {check['metric']}{among}"
    return _CRITERIA[asked.compare](asked) + among


def _bound(asked: config.Bound) -> str:
    what = {"rows": "every value", "share": "share of ones"}.get(asked.of, asked.of)
    return f"{what} of {asked.metric}, asked to be {_side(asked.side)} {number(asked.value)}"


def _side(side: str) -> str:
    return {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}[side]


def _arms(asked: Any) -> str:
    sign = "÷" if asked.compare == "ratio" else "−"
    both = set(asked.a) & set(asked.b)
    same = {name: asked.a[name] for name in both if asked.a[name] == asked.b[name]}
    arms = [
        where_text({name: value for name, value in arm.items() if name not in same})
        for arm in (asked.a, asked.b)
    ]
    pairs = f", paired by {', '.join(asked.pair)}" if asked.pair else ", unpaired"
    held = f", {where_text(same)}" if same else ""
    return f"{asked.metric}: ({arms[0]}) {sign} ({arms[1]}){held}{pairs}"


def _trend(asked: config.Trend) -> str:
    what = {"slope": "slope", "loglog": "log-log slope", "spearman": "rank correlation"}
    return f"{what[asked.statistic]} of {asked.metric} over {asked.over}"


def _order(asked: config.Order) -> str:
    slack = f", up to {number(asked.within)}" if asked.within else ""
    return f"{asked.metric}: {asked.cells} {value_text(asked.target)} minus the best other {asked.cells}{slack}"


def _count(asked: config.Count) -> str:
    return (
        f"groups by {', '.join(asked.group)} whose {asked.metric} is {_side(asked.side)} "
        f"{number(asked.value)}, asked for {asked.at_least}"
    )


_CRITERIA: dict[str, Any] = {
    "bound": _bound,
    "difference": _arms,
    "ratio": _arms,
    "equivalence": lambda asked: f"{_arms(asked)}, within ±{number(asked.margin)}",
    "non_inferiority": lambda asked: f"{_arms(asked)}, worse by less than {number(asked.margin)}",
    "trend": _trend,
    "order": _order,
    "count": _count,
    "describe": lambda asked: f"mean of {asked.metric}",
}

_ARXIV = re.compile(r"arXiv[: ](\d{4}\.\d{4,5})")


def prose(text: str) -> Markup:
    """Escaped text in which `backticks` are code and arXiv numbers are links."""
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(_ARXIV.sub(r'<a href="https://arxiv.org/abs/\1">\g<0></a>', marked))


# -- the axis of a check --------------------------------------------------------------------------

LEFT, RIGHT = 9.0, 91.0  # where the lowest and the highest value lie, in percent of the width


@dataclass(frozen=True)
class Strip:
    """Where the parts of one check lie on its axis, in percent of the width."""

    ticks: list[tuple[float, str]]
    region: tuple[float, float] | None
    edges: list[float]
    reference: float | None
    interval: tuple[float, float] | None
    open_ends: tuple[bool, bool]
    effect: float | None
    words: str


def strip(check: Mapping[str, Any], asked: Any = None) -> Strip:
    """Lay out effect, interval, reference and the region where the claim holds on one axis."""
    holds = check["holds"] or [None, None]
    ends = check["interval"]
    values = [
        value
        for value in (check["effect"], *ends, *holds, check["reference"])
        if value is not None and math.isfinite(value)
    ]
    log = check["scale"] == "log" and all(value > 0 for value in values)
    low, high = _range(values, log)
    warp = math.log if log else float

    def place(value: float) -> float:
        share = (warp(value) - warp(low)) / (warp(high) - warp(low))
        return round(LEFT + (RIGHT - LEFT) * share, 2)

    unknown = ends[0] is None and ends[1] is None
    shown = "" if unknown else f"95 % interval {interval_text(check)}, "
    unit = unit_of(check)
    short = unit if len(unit) <= 2 else ""
    return Strip(
        ticks=[
            (place(tick), with_unit(text, short))
            for tick, text in ticks(low, high, log=log, whole=check["compare"] == "count")
        ],
        region=_span(holds, place, 0.0, 100.0) if check["holds"] else None,
        edges=[place(value) for value in holds if value is not None],
        reference=None if check["reference"] is None else place(check["reference"]),
        interval=None if unknown else _span(ends, place, 1.5, 98.5),
        open_ends=(not unknown and ends[0] is None, not unknown and ends[1] is None),
        effect=None if check["effect"] is None else place(check["effect"]),
        words=f"effect {with_unit(number(check['effect']), unit)}, {shown}{region_text(check, asked)}",
    )


def _span(ends: list[float | None], place: Any, left: float, right: float) -> tuple[float, float]:
    low, high = ends
    return (left if low is None else place(low), right if high is None else place(high))


def _range(values: list[float], log: bool) -> tuple[float, float]:
    """The values' range, widened where they are all the same."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if high > low and not math.isclose(low, high, rel_tol=1e-9):
        return low, high
    if log:
        return low / 2, high * 2
    pad = abs(low) / 2 or 1.0
    return low - pad, high + pad


def ticks(
    low: float, high: float, *, log: bool = False, whole: bool = False
) -> list[tuple[float, str]]:
    """Round numbers between ``low`` and ``high``, six at most, with their texts; ``whole`` for counts."""
    found = _log_ticks(low, high) if log else []
    if len(found) < 3:
        rough = (high - low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * (1 - 1e-9))
        step = max(1.0, round(step)) if whole else step
        decimals = max(0, 2 - math.floor(math.log10(step)))
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        found = [round(i * step, decimals) for i in range(first, last + 1)]
    return [(value, number(value, 6)) for value in found]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, or, over a short range, round numbers between them; empty if neither fits."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = range(first, last + 1)
    step = math.ceil(len(every) / 6)
    powers = [exponent for exponent in every if exponent % step == 0]
    for factors, exponents in (
        ((1,), powers),
        ((1, 2, 5), every),
        ((1, 3), every),
        ((1, 1.5, 2, 3, 5, 7), every),
    ):
        values = [float(f"{factor}e{exponent}") for exponent in exponents for factor in factors]
        found = [value for value in values if low <= value <= high]
        if 3 <= len(found) <= 6:
            return found
    return []


# -- the site -------------------------------------------------------------------------------------


def build(scale: str, root: Path = Path()) -> Path:
    """Write ``results/<scale>/report/`` from what is there, and remove pages that no longer belong.

    Args:
        scale: ``smoke``, ``laptop`` or ``paper``.
        root: the folder that holds ``results/``.

    Returns:
        The path of the front page.

    Raises:
        ValueError: an unknown scale.
        ConfigError: a configuration file is not valid.
        DamagedArtifact: a file of the results cannot be read.
    """
    if scale not in SCALES:
        raise ValueError(f"scale is {scale!r}; expected one of {', '.join(SCALES)}")
    entries = [read_entry(slug, scale, root) for slug in known_slugs()]
    site = root / "results" / scale / "report"
    written = [_copy(TEMPLATES / name, site / name) for name in ASSETS]
    for entry in entries:
        for picture in entry.pictures:
            if picture.source:
                target = site / "figures" / entry.slug / f"{picture.name}.svg"
                written.append(_copy(picture.source, target))
    for name, text in pages(entries, scale).items():
        with replacing(site / name) as part:
            part.write_text(text, encoding="utf-8")
        written.append(site / name)
    for stale in {*site.glob("*.html"), *site.glob("figures/*/*.svg")} - set(written):
        stale.unlink()
    return site / "index.html"


def _copy(source: Path, target: Path) -> Path:
    with replacing(target) as part:
        shutil.copyfile(source, part)
    return target


def pages(entries: list[Entry], scale: str) -> dict[str, str]:
    """HTML of every page by file name."""
    environment = _environment(scale)
    claims = [item for entry in entries for item in entry.judged]
    result = {
        "index.html": environment.get_template("index.html").render(
            entries=entries,
            total=tally(claims),
            claims=len(claims),
            most=max((len(entry.judged) for entry in entries), default=1),
        )
    }
    page = environment.get_template("paper.html")
    around = [None, *entries, None]
    for entry, before, after in zip(entries, around, around[2:], strict=False):
        result[f"{entry.slug}.html"] = page.render(entry=entry, before=before, after=after)
    return result


def _environment(scale: str) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {
        "scale": scale,
        "scales": SCALES,
        "verdicts": VERDICTS,
        "states": (*VERDICTS, NOT_RUN),
        "not_run": NOT_RUN,
        "meaning": MEANING,
        "strip": strip,
        "criterion": criterion,
    }
    filters: dict[str, Any] = {
        "number": number,
        "css": lambda verdict: verdict.replace(" ", "-"),
        "prose": prose,
        "runs": runs,
        "effect": lambda check: with_unit(number(check["effect"]), unit_of(check)),
        "interval": interval_text,
        "region": region_text,
        "unit": unit_of,
    }
    environment.filters |= filters
    return environment


# -- tables elsewhere -----------------------------------------------------------------------------


def verdict_table(
    scale: str, root: Path = Path(), slugs: Iterable[str] | None = None, width: int | None = None
) -> str:
    """One line per claim, for the terminal.

    Args:
        scale: ``smoke``, ``laptop`` or ``paper``.
        root: the folder that holds ``results/``.
        slugs: which papers (default: all).
        width: columns of the terminal (default: as it is).
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    entries = [read_entry(slug, scale, root) for slug in slugs or known_slugs()]
    lines = [_line(entry, item) for entry in entries for item in entry.judged]
    heads = ("paper", "claim", "data", "verdict", "effect", "95 % interval", "claim in words")
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)][:-1]
    columns = width or shutil.get_terminal_size((140, 24)).columns
    words = max(24, columns - sum(widths) - 3 * len(widths))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, size in zip(heads, [*widths, words], strict=True):
        justify = "right" if name == "effect" else "left"
        table.add_column(name, no_wrap=True, width=size, justify=justify)  # type: ignore[arg-type]
    for line in lines:
        table.add_row(*map(Text, line))
    file = StringIO()
    console = Console(file=file, width=sum(widths) + words + 4 * len(heads), color_system=None)
    console.print(table)
    counts = tally(item for entry in entries for item in entry.judged)
    summary = (
        ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "none"
    )
    total = f"{_many(len(lines), 'claim')} of {_many(len(entries), 'paper')} at {scale} scale: {summary}"
    return "\n".join([*(text.rstrip() for text in file.getvalue().splitlines()), "", total])


def _many(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


def _line(entry: Entry, item: Judged) -> list[str]:
    check = item.decisive
    return [
        entry.slug,
        item.claim.id,
        item.head["dataset"] if item.head else "",
        f"{MARKS[item.verdict]} {item.verdict}",
        with_unit(number(check["effect"]), unit_of(check)) if check else "",
        interval_text(check) if check else "",
        " ".join(item.text.split()),
    ]


def readme_table(root: Path = Path()) -> str:
    """Papers and their numbers of verdicts at laptop scale, in Markdown."""
    entries = [read_entry(slug, "laptop", root) for slug in known_slugs()]
    rows = [_markdown(entry) for entry in entries]
    total = tally(item for entry in entries for item in entry.judged)
    if len(entries) > 1:
        counts = [f"**{total[verdict]}**" for verdict in VERDICTS]
        rows.append(["**all**", *counts, ""])
    head = ["paper", *(f"{MARKS[verdict]} {verdict}" for verdict in VERDICTS), "files"]
    rule = ["---", *["---:"] * len(VERDICTS), "---"]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])


def _markdown(entry: Entry) -> list[str]:
    title = entry.paper.title.replace("|", "\\|").replace("<", "&lt;")
    links = [f"[config](config/papers/{entry.slug}.yaml)"]
    if not entry.was_run:
        return [f"{title} (`{entry.slug}`)", *[""] * len(VERDICTS), f"not run yet, {links[0]}"]
    folder = f"results/laptop/{entry.slug}"
    links.append(f"[verdicts]({folder}/claims.json)")
    if entry.is_drawn:
        links.append(f"[figures]({folder}/figures)")
    counts = [str(entry.tally[verdict] or "·") for verdict in VERDICTS]
    return [f"{title} (`{entry.slug}`)", *counts, ", ".join(links)]


def sync_readme(path: Path, root: Path = Path()) -> bool:
    """Rewrite the table between the markers of README.md.

    Returns:
        Whether the file changed.

    Raises:
        ValueError: the markers are not there, once each and in order.
    """
    text = path.read_text(encoding="utf-8")
    start, end = MARKERS
    if text.count(start) != 1 or text.count(end) != 1 or text.index(start) > text.index(end):
        raise ValueError(f"{path}: expected {start} and, after it, {end}, once each")
    head, rest = text.split(start)
    tail = rest.split(end)[1]
    table = readme_table(root)
    new = f"{head}{start}\n{table}\n{end}{tail}"
    if new == text:
        return False
    with replacing(path) as part:
        part.write_text(new, encoding="utf-8")
    return True
