"""The report: links hold, strings are escaped, bytes repeat, and a browser shows what it should."""

import json
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from pydantic import ConfigDict

from encore.core import config, data, report
from encore.core.claims import BLOCKED, CONTRADICTED, NOT_JUDGED, REPRODUCED, UNDECIDED
from encore.core.job import DamagedArtifact

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="360pt" height="{height}pt" viewBox="0 0 360 {height}">'
    '<rect width="360" height="{height}" fill="#fff"/><circle cx="180" cy="100" r="40"/></svg>'
)
HOSTILE = "K < 3 & <script>alert('no')</script> \"wins\""
VOID = {"meta", "link", "br", "hr", "img", "input"}


# -- a small study that shows every case -----------------------------------------------------------


def check(verdict, **changes):
    """A check of a record, as the judge writes it."""
    return {
        "name": "gain at K=3", "metric": "gain", "where": {"k": 3}, "compare": "difference", "effect": 0.057,
        "interval": [0.041, 0.072], "interval_method": "Student t, 5 units", "holds": [0.0, None],
        "unit": "", "scale": "linear", "reference": 0.0, "n": 10, "seeds": [100, 101, 102, 103, 104],
        "verdict": verdict,
        "control": {"name": "arms exchanged", "verdict": CONTRADICTED, "reproduced_share": 0.0},
    } | changes  # fmt: skip


RATIO = {
    "name": "time against the exact way", "metric": "seconds", "where": {}, "compare": "ratio", "effect": 0.02,
    "interval": [0.015, 0.03], "holds": [None, 0.5], "unit": "s", "scale": "log", "reference": 1.0,
}  # fmt: skip
DIFFERENCE = {
    "name": "gain at K=3", "metric": "gain", "where": {"k": 3}, "compare": "difference",
    "a": {"method": "ours"}, "b": {"method": "peer"}, "pair": ["seed"], "side": ">",
}  # fmt: skip
CASES = {
    "p1": ([REPRODUCED], [check(REPRODUCED), check(REPRODUCED, interval=[0.03, None])]),
    "p2": ([UNDECIDED], [check(UNDECIDED, interval=[None, None], interval_method="none: one unit")]),
    "p3": ([CONTRADICTED], [check(CONTRADICTED, effect=-0.1, interval=[-0.2, -0.05])]),
    "p4": ([NOT_JUDGED], []),
    "p5": ([BLOCKED], []),
    "p6": ([BLOCKED, REPRODUCED], [check(REPRODUCED, effect=0.0, interval=[0.0, 0.0], holds=[0.0, 0.0])]),
    "p7": ([NOT_JUDGED], [check(NOT_JUDGED, compare="describe", holds=None, control=None, reference=None)]),
    "p8": ([REPRODUCED], [check(REPRODUCED, **RATIO)]),
}  # fmt: skip
REASONS = {
    BLOCKED: "data set real is not here: run `encore data fetch real`",
    NOT_JUDGED: "decided at paper scale, this is laptop scale",
}


def claim(name, **changes):
    datasets = ["real", "digits"] if len(CASES[name][0]) == 2 else ["real"]
    return {
        "id": name, "text": f"Claim {name} holds.", "kind": "speed" if name == "p8" else "empirical",
        "datasets": datasets, "paper": "0.632", "refuted_if": "the interval lies below zero",
        "checks": [DIFFERENCE],
    } | changes  # fmt: skip


def records(claim):
    verdicts, checks = CASES[claim["id"]]
    for verdict, dataset in zip(verdicts, claim["datasets"], strict=True):
        yield {
            "id": claim["id"], "text": claim["text"], "kind": claim["kind"], "paper": claim["paper"],
            "refuted_if": claim["refuted_if"], "note": "", "dataset": dataset, "scale": "laptop",
            "command": "snakemake --cores 2 --config scale=laptop -- alpha_claims",
            "verdict": verdict, "reason": REASONS.get(verdict, ""),
            "checks": [] if verdict == BLOCKED else checks,
        }  # fmt: skip


def paper(title, claims):
    scale = {
        "datasets": ["real", "digits"],
        "seeds": [100, 101, 102],
        "net": {"width": 32, "rate": 1e-6},
    }
    return {
        "title": title, "summary": "Chooses K models of an archive.", "citation": "arXiv 2605.06763",
        "tuned_on": {"seeds": [0, 1, 2], "what": "the learning rate"},
        "scales": {"smoke": scale | {"seeds": [0]}, "laptop": scale, "paper": scale},
        "figures": [
            {"name": "coverage", "title": "Coverage against K", "caption": "Mean and interval."},
            {"name": "wide", "title": "All families", "caption": "Gain by family."},
            {"name": "missing", "title": "Not drawn", "caption": "No file."},
            {"name": "runtime", "title": "Runtime", "caption": "Seconds.", "timed": True},
        ],
        "choices": [{"about": "demand", "chosen": "four models", "why": "none is named", "otherwise": "less"}],
        "claims": claims,
    }  # fmt: skip


class Settings(config.Strict):
    """Takes any setting."""

    model_config = ConfigDict(extra="allow")


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")


def make_study(root, patch):
    """Three papers: one with every verdict, one with a hostile text, one that was not run."""
    alpha = [claim(name) for name in CASES]
    papers = {
        "alpha": paper("Alpha & omega", alpha),
        "beta": paper(HOSTILE, [claim("p1", text=HOSTILE)]),
        "gamma": paper("Gamma", [claim("p1"), claim("p2")]),
    }
    for slug, content in papers.items():
        write(root / f"config/papers/{slug}.yaml", yaml.safe_dump(content))
        module = ModuleType(f"encore.settings.{slug}")
        module.Settings = Settings
        patch.setitem(sys.modules, module.__name__, module)
    facts = {
        "title": "Digits", "licence": "CC BY 4.0", "citation": "Alpaydin 1998", "homepage": "https://example.org",
        "files": {"a.csv": {}}, "sources": [{"mirror": "digits"}],
    }  # fmt: skip
    write(root / "config/datasets.yaml", yaml.safe_dump({"datasets": {"digits": facts}}))
    for slug in ("alpha", "beta"):
        folder = root / "results/laptop" / slug
        found = [record for item in papers[slug]["claims"] for record in records(item)]
        write(folder / "claims.json", [r for r in found if r["kind"] != "speed"])
        write(folder / "speed.json", [r for r in found if r["kind"] == "speed"])
        write(folder / "metrics.json", {"digits": {"gain": {"ours": 0.25, "peer": 1.5e-7}}})
        write(folder / "figures/coverage.svg", SVG.format(height=230))
        write(folder / "figures/wide.svg", SVG.format(height=120))
        write(folder / "timings/runtime.svg", SVG.format(height=230))
    write(root / "results/laptop/alpha/metrics.parquet", "")
    cost = {
        "core_minutes": 3.25,
        "memory_mb": 812,
        "disk_mb": 44.1,
        "jobs": 19,
        "wall_minutes": 2.2,
    }
    write(root / "results/costs.json", {"alpha": {"laptop": cost}})
    patch.setattr(config, "ROOT", root)
    patch.setattr(data, "ROOT", root)
    data.Registry.load.cache_clear()
    return root


@pytest.fixture
def study(tmp_path, monkeypatch):
    yield make_study(tmp_path, monkeypatch)
    data.Registry.load.cache_clear()


class Page(HTMLParser):
    """Elements of a page: unique ids, links, files that it loads, and whether tags close in order."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded, self.open, self.text = [], [], [], [], []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if "href" in attrs and tag == "a" else []
        self.loaded += [attrs[name] for name in ("src", "href") if name in attrs and tag != "a"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, text):
        self.text.append(text)


def pages(site):
    return {path.name: Page(path) for path in sorted(site.glob("*.html"))}


# -- the site, as files ------------------------------------------------------------------------------


def test_every_link_anchor_and_file_is_there(study):
    site = report.build("laptop", study).parent
    found = pages(site)
    assert set(found) == {"index.html", "alpha.html", "beta.html", "gamma.html"}
    for name, page in found.items():
        assert page.open == []
        assert len(page.ids) == len(set(page.ids)), name
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                assert parts.scheme == "https"
                continue
            target = site / unquote(parts.path) if parts.path else site / name
            assert target.exists(), f"{name}: {link}"
            if parts.fragment:
                assert parts.fragment in found[target.name].ids, f"{name}: {link}"
        for link in page.loaded:
            local = link.startswith("data:") or link[1:] in page.ids or (site / link).exists()
            assert local, f"{name} loads {link}"


def test_site_holds_nothing_else(study):
    site = report.build("laptop", study).parent
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    figures = {
        f"figures/{s}/{n}.svg" for s in ("alpha", "beta") for n in ("coverage", "wide", "runtime")
    }
    assert files == figures | {
        "index.html",
        "alpha.html",
        "beta.html",
        "gamma.html",
        "style.css",
        "app.js",
    }


def test_front_page_counts_and_links_each_claim(study):
    page = Page(report.build("laptop", study))
    cells = [link for link in page.links if "#claim-" in link]
    assert cells == [f"alpha.html#claim-{name}" for name in CASES] + [
        "beta.html#claim-p1", "gamma.html#claim-p1", "gamma.html#claim-p2",
    ]  # fmt: skip
    html = report.build("laptop", study).read_text(encoding="utf-8")
    for verdict, count in {
        "reproduced": 4,
        "undecided": 1,
        "not-judged": 2,
        "blocked": 1,
        "not-run": 2,
    }.items():
        assert html.count(f'data-verdict="{verdict}"') == count


def test_texts_are_escaped(study):
    site = report.build("laptop", study).parent
    for name in ("index.html", "beta.html"):
        html = (site / name).read_text(encoding="utf-8")
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert" in html


def test_paper_page_says_what_was_judged(study):
    text = " ".join("".join(Page(report.build("laptop", study).parent / "alpha.html").text).split())
    for words in (
        "real, the main data set, could not be had; digits decides here.",
        "run encore data fetch real",
        "gain: (method ours) − (method peer), paired by seed (only k 3)",
        "0.057 [0.041, 0.072]", "0.057 [0.03, ∞]", "0.057 no interval", "0.02× [0.015, 0.03]",
        "holds above 0", "holds below 0.5×", "control: arms exchanged → contradicted",
        "5 seeds (100–104)", "Tuned on seeds 0–2", "Not drawn yet at laptop scale.",
        "results/laptop/alpha/metrics.parquet", "snakemake --cores 2 --config scale=laptop -- alpha_claims",
        "net.rate", "10⁻⁶", "3.25", "made inside the pipeline", "Licence: CC BY 4.0",
    ):  # fmt: skip
        assert words in text


def test_paper_without_results_names_the_command(study):
    text = "".join(Page(report.build("laptop", study).parent / "gamma.html").text)
    assert "Not run yet at laptop scale." in text
    assert "snakemake --cores 2 --config scale=laptop -- gamma" in text
    assert "Not measured yet." in text


def test_missing_costs_and_results_are_no_error(study):
    shutil.rmtree(study / "results")
    text = "".join(Page(report.build("laptop", study)).text)
    assert "not measured" in text


def test_study_without_papers_is_an_empty_site(study):
    for path in (study / "config/papers").iterdir():
        path.unlink()
    assert "0 claims of 0 papers" in "".join(Page(report.build("laptop", study)).text)
    assert report.verdict_table("laptop", study).endswith(
        "0 claims of 0 papers at laptop scale: none"
    )


def test_damaged_results_are_named(study):
    write(study / "results/laptop/alpha/claims.json", "[{")
    with pytest.raises(DamagedArtifact, match=r"alpha/claims\.json is truncated or damaged"):
        report.build("laptop", study)


def test_unknown_scale_is_refused(study):
    with pytest.raises(ValueError, match="scale is 'desk'; expected one of smoke, laptop, paper"):
        report.build("desk", study)


def test_same_inputs_same_bytes_and_stale_pages_go(study):
    def contents():
        site = report.build("laptop", study).parent
        return {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}

    first = contents()
    write(study / "results/laptop/report/gone.html", "old")
    write(study / "results/laptop/report/figures/alpha/gone.svg", "old")
    assert contents() == first


def test_control_that_passes_is_pointed_out(study):
    bad = check(
        REPRODUCED,
        control={"name": "arms exchanged", "verdict": REPRODUCED, "reproduced_share": 1.0},
    )
    path = study / "results/laptop/beta/claims.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content[0]["checks"] = [bad]
    write(path, content)
    html = (report.build("laptop", study).parent / "beta.html").read_text(encoding="utf-8")
    assert "a check that its control passes proves nothing" in html


# -- numbers, words, axes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.812458, "0.8125"), (-0.5, "−0.5"), (15625, "15\u202f625"), (2.5e-7, "2.5×10⁻⁷"),
        (1e-6, "10⁻⁶"), (-1e-6, "−10⁻⁶"), (3e8, "3×10⁸"), (None, "none"), (1.0, "1"), (999.96, "1000"),
    ],
)  # fmt: skip
def test_number(value, text):
    assert report.number(value) == text


def test_runs_of_seeds():
    assert report.runs([0, 100, 101, 102, 5, 6]) == "0, 100–102, 5, 6"


@pytest.mark.parametrize(
    ("low", "high", "options", "texts"),
    [
        (0, 1, {}, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (-0.009, 0.032, {}, ["0", "0.01", "0.02", "0.03"]),
        (14, 15, {"whole": True}, ["14", "15"]),
        (1e-6, 1, {"log": True}, ["10⁻⁶", "0.0001", "0.01", "1"]),
        (0.015, 1, {"log": True}, ["0.02", "0.05", "0.1", "0.2", "0.5", "1"]),
        (0.15, 60, {"log": True}, ["0.3", "1", "3", "10", "30"]),
        (0.98, 1.03, {"log": True}, ["0.98", "0.99", "1", "1.01", "1.02", "1.03"]),
    ],
)
def test_ticks_are_round_and_few(low, high, options, texts):
    assert [text for _, text in report.ticks(low, high, **options)] == texts


@pytest.mark.parametrize(
    "changes",
    [
        {}, RATIO, {"interval": [None, 0.1]}, {"interval": [None, None]}, {"holds": None, "reference": None},
        {"effect": 0.0, "interval": [0.0, 0.0], "holds": [None, 0.0]}, {"effect": None},
        {"effect": 1e-9, "interval": [0.0, 1e-9], "holds": [None, 1e-6]},
        {"effect": 3.0, "interval": [3.0, 3.0], "holds": [None, None], "reference": None},
        RATIO | {"effect": 2.0, "interval": [2.0, 2.0], "holds": [2.0, None], "reference": None},
    ],
)  # fmt: skip
def test_strip_stays_on_its_axis(changes):
    strip = report.strip(check(REPRODUCED, **changes))
    places = [
        *(x for x, _ in strip.ticks), *(strip.region or ()), *strip.edges, *(strip.interval or ()),
        *(x for x in (strip.effect, strip.reference) if x is not None),
    ]  # fmt: skip
    assert all(0 <= place <= 100 for place in places)
    if strip.interval and strip.effect is not None:
        assert strip.interval[0] <= strip.effect <= strip.interval[1]


def test_strip_keeps_order_of_values():
    strip = report.strip(check(REPRODUCED, **RATIO))
    assert strip.region[0] == 0.0
    assert strip.interval[0] < strip.effect < strip.interval[1] < strip.edges[0] < strip.reference


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"compare": "bound", "of": "rows", "side": ">=", "value": 1}, "every value of gain, asked to be at least 1"),
        ({"compare": "trend", "over": "m", "statistic": "loglog", "within": [-1, 0]}, "log-log slope of gain over m"),
        ({"compare": "order", "cells": "k", "target": 3, "better": "higher", "within": 0.03},
         "gain: k 3 minus the best other k, up to 0.03"),
        ({"compare": "count", "side": ">", "value": 0, "group": ["family"], "at_least": 15},
         "groups by family whose gain is above 0, asked for 15"),
        ({"compare": "equivalence", "a": {"m": 1, "k": [2, 3]}, "b": {"m": 2, "k": [2, 3]}, "margin": 0.2},
         "gain: (m 1) − (m 2), k 2 or 3, unpaired, within ±0.2"),
        ({"compare": "describe"}, "mean of gain"),
    ],
)  # fmt: skip
def test_criterion_in_words(asked, words):
    asked = config.Claim.model_validate(
        claim("p1") | {"checks": [{"metric": "gain"} | asked]}
    ).checks[0]
    assert (
        report.criterion({"compare": asked.compare, "metric": "gain", "where": {}}, asked) == words
    )


def test_edge_belongs_to_the_region_where_the_claim_says_so():
    asked = config.Claim.model_validate(
        claim("p1") | {"checks": [DIFFERENCE | {"side": ">="}]}
    ).checks[0]
    assert report.region_text(check(REPRODUCED), asked) == "holds at least 0"
    assert (
        report.region_text(check(REPRODUCED, compare="count", holds=[15, None]))
        == "holds at least 15"
    )


# -- tables elsewhere ----------------------------------------------------------------------------------


def test_verdict_table_has_one_line_per_claim(study):
    lines = report.verdict_table("laptop", study, width=100).splitlines()
    assert sum(line.startswith(("alpha", "beta", "gamma")) for line in lines) == 11
    assert any(line.split()[:4] == ["alpha", "p6", "digits", "✓"] for line in lines)
    assert lines[-1] == (
        "11 claims of 3 papers at laptop scale: 4 reproduced, 1 undecided, 1 contradicted, 2 not judged, "
        "1 blocked, 2 not run"
    )
    assert report.verdict_table("laptop", study, ["beta"]).count("beta") == 1


def test_readme_is_brought_in_sync(study):
    path = study / "README.md"
    path.write_text(
        "# Encore\n\n<!-- verdicts -->\nold\n<!-- /verdicts -->\n\nMore.\n", encoding="utf-8"
    )
    assert report.sync_readme(path, study)
    assert not report.sync_readme(path, study)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Encore\n\n<!-- verdicts -->\n| paper |")
    assert text.endswith("\n<!-- /verdicts -->\n\nMore.\n")
    assert "| Alpha & omega (`alpha`) | 3 | 1 | 1 | 2 | 1 |" in text
    assert "[verdicts](results/laptop/alpha/claims.json)" in text
    assert "not run yet" in text
    assert "<script>" not in text


def test_readme_without_markers_is_refused(study):
    path = study / "README.md"
    path.write_text("# Encore\n", encoding="utf-8")
    with pytest.raises(ValueError, match="expected <!-- verdicts -->"):
        report.sync_readme(path, study)


# -- in a browser --------------------------------------------------------------------------------------

NAMES = ("index.html", "alpha.html", "beta.html", "gamma.html")
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield report.build("laptop", make_study(tmp_path_factory.mktemp("site"), patch)).parent
    data.Registry.load.cache_clear()


@pytest.fixture(scope="module")
def chromium():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as tools:
        names = ("chromium", "chromium-browser", "google-chrome")
        path = next(filter(None, map(shutil.which, names)), tools.chromium.executable_path)
        if not Path(path).exists():
            pytest.skip("no Chromium here: install it, or run `playwright install chromium`")
        browser = tools.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, site):
    """Open a page; at the end, no message on the console, no failed and no outside request."""
    problems, contexts = [], []

    def open_page(name, width=1280, **options):
        contexts.append(chromium.new_context(viewport={"width": width, "height": 800}, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", lambda request: problems.append(request.url))
        page.on("request", lambda r: r.url.startswith(("file:", "data:")) or problems.append(r.url))
        page.goto(f"{(site / name.split('#')[0]).as_uri()}{name[len(name.split('#')[0]) :]}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def column(page, index):
    return page.locator(f"#papers tbody tr > :nth-child({index})").all_inner_texts()


@pytest.mark.browser
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_pages_fit_their_width(visit, name, width):
    page = visit(name, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_every_figure_is_drawn(visit):
    page = visit("alpha.html")
    sizes = page.eval_on_selector_all(
        "figure img", "all => all.map(i => [i.naturalWidth, i.complete])"
    )
    assert len(sizes) == 3
    assert all(width > 0 and complete for width, complete in sizes)
    page.locator("figure a").first.click()
    assert page.url.endswith("figures/alpha/coverage.svg")


@pytest.mark.browser
def test_table_sorts_by_click_and_by_keyboard(visit):
    page = visit("index.html")
    head = page.locator("#papers thead th")
    assert head.nth(0).get_attribute("aria-sort") == "ascending"
    page.locator("#papers thead button").nth(2).click()
    assert head.nth(2).get_attribute("aria-sort") == "descending"
    assert column(page, 3) == ["3", "1", "0"]
    page.locator("#papers thead button").nth(0).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert head.nth(0).get_attribute("aria-sort") == "descending"
    assert head.nth(2).get_attribute("aria-sort") is None
    assert [text.split()[0] for text in column(page, 1)] == ["gamma", "beta", "alpha"]
    page.locator("#papers thead button").nth(7).click()  # papers that were not measured come last
    assert column(page, 1)[0].startswith("alpha")


@pytest.mark.browser
def test_filter_and_choice_of_a_verdict(visit):
    page = visit("index.html")
    page.locator("#find").fill("omega")
    assert page.locator(".paper-row:visible").count() == 1
    assert page.locator("#papers tbody tr:visible").count() == 1
    assert page.locator("#said").inner_text() == "1 of 3 papers"
    page.locator("#find").fill("no such words")
    assert page.locator(".nothing").is_visible()
    page.locator("#find").fill("")
    button = page.locator('button[data-only="contradicted"]')
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator(".cell:not(.faint)").count() == 1
    button.click()
    assert page.locator(".cell.faint").count() == 0


@pytest.mark.browser
def test_cell_explains_itself_and_leads_to_the_claim(visit):
    page = visit("index.html")
    cell = page.locator('a.cell[href="alpha.html#claim-p3"]')
    cell.focus()
    tip = page.locator("#tip")
    assert "p3, contradicted. Claim p3 holds. (gain at K=3: −0.1 [−0.2, −0.05])" in tip.inner_text()
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    cell.click()
    box = page.locator("#claim-p3").bounding_box()
    assert page.url.endswith("alpha.html#claim-p3")
    assert 0 <= box["y"] < 800


@pytest.mark.browser
def test_theme_follows_the_system_and_the_reader(visit):
    def ground(page):
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.strip("rgb()").split(",")) / 3

    assert ground(visit("alpha.html", color_scheme="light")) > 200
    page = visit("alpha.html", color_scheme="dark")
    assert ground(page) < 60
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.card')).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    toggle = page.locator("button.theme")
    assert toggle.get_attribute("aria-pressed") == "true"
    toggle.click()
    assert ground(page) > 200
    assert toggle.get_attribute("aria-pressed") == "false"
    page.reload()
    assert ground(page) > 200
    page.emulate_media(media="print", color_scheme="dark")
    assert ground(page) > 200


@pytest.mark.browser
def test_print_shows_the_content_without_the_controls(visit):
    page = visit("alpha.html", color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("button.theme").is_visible()
    assert page.locator("button.copy:visible").count() == 0
    assert page.locator(".claim:visible").count() == len(CASES)
    assert len(page.pdf(format="A4")) > 10_000


@pytest.mark.browser
def test_readable_without_scripts(visit):
    page = visit("alpha.html", java_script_enabled=False)
    assert page.locator(".command code").first.is_visible()
    assert page.locator("button.copy:visible").count() == 0
    assert page.locator("button.theme:visible").count() == 0


@pytest.mark.browser
def test_skip_link_is_first_and_copy_button_answers(visit):
    page = visit("alpha.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    button = page.locator("button.copy").first
    button.click()
    page.wait_for_function("document.querySelector('button.copy').textContent !== 'Copy'")
    assert page.locator("#said").inner_text() != ""


@pytest.mark.parametrize(("verdict", "said"), [("blocked", True), ("not judged", False)])
def test_only_a_blocked_main_data_set_is_said_to_be_missing(verdict, said):
    main, other = {"verdict": verdict}, {"verdict": "reproduced"}
    judged = report.Judged(claim=None, records=[main, other])
    assert judged.head is other
    assert judged.missing_main is (main if said else None)
    assert judged.others == ([] if said else [main])
