"""What every paper must honour, checked paper by paper."""

import ast
import doctest
import hashlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from encore.core.claims import NOT_JUDGED, VERDICTS
from encore.core.config import ROOT, known_slugs, load_paper
from encore.core.report import MARKERS, read_records, readme_table
from encore.core.sources import code
from tests.conftest import smoke_run, snakemake

SLUGS = known_slugs()
DIRECTIVES = (
    "name", "input", "output", "log", "benchmark", "threads", "resources", "localrule", "params", "script",
)  # fmt: skip
RULE_LINES = 30  # as snakefmt spreads it; about 20 without lone brackets and code inputs
SCRIPT_LINES = 60
TIMED = {"logs", "benchmarks", "timings", "timings.parquet", "speed.json"}


@pytest.fixture(scope="session")
def smoke_again(smoke, tmp_path_factory):
    """Results of a second one; the first is there before it, so that both read the same data sets."""
    return smoke_run(tmp_path_factory.mktemp("again"))


# -- the smoke run --------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", SLUGS)
def test_the_smoke_run_finds_numbers_for_every_claim(smoke, slug):
    """Nothing is judged at smoke scale, but each check of a data set that is here has an effect."""
    paper = load_paper(slug)
    found = read_records(smoke / slug)
    assert {r["id"] for r in found} == {claim.id for claim in paper.claims}
    used = paper.scales["smoke"]["datasets"] + paper.synthetic
    for record in found:
        claim = next(claim for claim in paper.claims if claim.id == record["id"])
        if "smoke" not in claim.scales and record["dataset"] in used:
            assert record["verdict"] in (NOT_JUDGED, "blocked")
        if record["dataset"] in used and record["verdict"] != "blocked":
            # judging raises where a check finds no rows; rows without a value leave no checks
            assert len(record["checks"]) in (0, len(claim.checks)), record["id"]


@pytest.mark.parametrize("slug", SLUGS)
def test_two_smoke_runs_give_the_same_bytes(smoke, smoke_again, slug):
    first, second = (hashes(folder / slug) for folder in (smoke, smoke_again))
    assert first == second
    assert first


def hashes(root):
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not TIMED & set(path.relative_to(root).parts)
    }


# -- the committed verdicts -----------------------------------------------------------------------


@pytest.mark.parametrize("slug", SLUGS)
def test_committed_verdicts_are_those_of_the_claims(slug):
    """Claims and verdicts match, and what is said to be reproduced fails on its control."""
    folder = ROOT / "results/laptop"
    if not (folder / slug / "claims.json").exists():
        assert "FILL IN" in load_paper(slug).title, (
            f"{slug} has no committed verdicts: run and record it"
        )
        pytest.skip("a scaffold has no verdicts yet")
    claims = {claim.id: claim for claim in load_paper(slug).claims}
    found = read_records(folder / slug)
    assert {(r["id"], r["dataset"]) for r in found} == {
        (c.id, d) for c in claims.values() for d in c.datasets
    }
    for record in found:
        assert record["text"] == claims[record["id"]].text
        assert record["verdict"] in VERDICTS
        for check in record["checks"]:
            assert check["effect"] is not None
            if check["verdict"] == "reproduced":
                assert check["control"]["verdict"] != "reproduced", (record["id"], check["name"])
    assert any(record["verdict"] in VERDICTS[:3] for record in found)


def test_the_readme_shows_the_committed_verdicts(tmp_path):
    """Those of the last commit: a run on this machine may have changed what lies in results/."""
    archive = ["git", "archive", "HEAD", "README.md", "results"]
    found = subprocess.run(archive, cwd=ROOT, capture_output=True, check=False)
    if found.returncode:
        pytest.skip("not a git checkout with committed verdicts")
    subprocess.run(["tar", "-x", "-C", tmp_path], input=found.stdout, check=True)
    text = (tmp_path / "README.md").read_text()
    shown = text.split(MARKERS[0])[1].split(MARKERS[1])[0].strip()
    assert shown == readme_table(tmp_path).strip()


# -- rules and scripts ----------------------------------------------------------------------------


def rules(path):
    """Name and lines of each rule in a file that snakefmt has formatted."""
    text = path.read_text()
    blocks = re.split(r"^rule ", text, flags=re.MULTILINE)[1:]
    for block in blocks:
        body = re.split(r"^\S", block.split("\n", 1)[1], flags=re.MULTILINE)[0]
        yield block.split(":")[0], body.rstrip().splitlines()


@pytest.mark.parametrize("slug", SLUGS)
def test_rules_are_short_and_complete_and_have_one_order(slug):
    for name, lines in rules(ROOT / f"workflow/rules/{slug}.smk"):
        directives = [
            re.match(r"\s*(\w+):", line)[1] for line in lines if re.match(r"^    \w+:", line)
        ]
        assert directives == sorted(directives, key=DIRECTIVES.index), name
        assert {"input", "output", "log", "script"} <= set(directives), name
        assert "localrule" in directives or {"benchmark", "threads", "resources"} <= set(
            directives
        ), name
        assert "code=code(" in "\n".join(lines), name
        spread = [line for line in lines if line.strip() not in (")", "),", "]", "],")]
        assert len(spread) <= RULE_LINES, name


@pytest.mark.parametrize("slug", SLUGS)
def test_rule_files_use_no_forbidden_word(slug):
    text = (ROOT / f"workflow/rules/{slug}.smk").read_text()
    for word in ("lambda", "run:", "shell:", "checkpoint", "directory(", "protected(", "update("):
        assert not re.search(rf"\b{re.escape(word)}", text), word


@pytest.mark.parametrize("slug", SLUGS)
def test_scripts_are_a_page_each_and_take_settings_from_params(slug):
    for path in (ROOT / "workflow/scripts" / slug).glob("*.py"):
        lines = [line for line in path.read_text().splitlines() if line.strip()]
        assert len(lines) <= SCRIPT_LINES, f"{path.name} has {len(lines)} lines"
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), f"{path.name} does not say what it does"
        assert "snakemake.config" not in path.read_text()


@pytest.mark.parametrize("slug", SLUGS)
def test_few_jobs_import_torch(slug):
    """An import of torch costs seconds: figures never need it."""
    for script in (ROOT / "workflow/scripts" / slug).glob("*figures*.py"):
        for file in code(f"{slug}/{script.name}"):
            imported = re.findall(
                r"^(?:import|from) (\w+)", (ROOT / file).read_text(), re.MULTILINE
            )
            assert "torch" not in imported, f"{script.name} imports torch through {file}"


# -- the library ----------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", SLUGS)
def test_every_public_name_is_documented(slug):
    module = import_module(f"encore.papers.{slug}")
    assert module.__doc__
    assert module.__all__ == sorted(module.__all__)
    for name in module.__all__:
        item = getattr(module, name)
        if callable(item):
            assert inspect.getdoc(item), name
        if inspect.isclass(item):
            for method, member in vars(item).items():
                ours = inspect.isfunction(member) and member.__module__ == item.__module__
                if ours and not method.startswith("_"):  # PyTorch Geometric adds some of its own
                    assert inspect.getdoc(getattr(item, method)), f"{name}.{method}"


@pytest.mark.parametrize("slug", SLUGS)
def test_the_method_card_works(slug):
    """The example of the card runs as it stands."""
    path = ROOT / f"src/encore/papers/{slug}/README.md"
    failures, tried = doctest.testfile(
        str(path),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert tried >= 3
    assert failures == 0


def test_the_readme_example_works():
    failures, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert (failures, tried > 3) == (0, True)


def test_a_method_is_importable_without_the_workflow():
    """No Snakemake, DVC or configuration is needed to import a method."""
    program = "import sys; import " + ", ".join(f"encore.papers.{slug}" for slug in SLUGS)
    program += (
        "; print([m for m in ('snakemake', 'dvc', 'encore.core.config') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
    assert run.stderr == ""


# -- the whole repository -------------------------------------------------------------------------


def test_the_paper_scale_plans():
    run = snakemake("--dry-run", "--config", "scale=paper")
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]


def test_snakemake_lint_has_no_new_complaint():
    """Environments come from requirements.lock, so that one lint is expected; any other is not."""
    run = snakemake("--lint")
    lints = set(re.findall(r"^ +\* (.+):$", run.stdout + run.stderr, flags=re.MULTILINE))
    assert lints <= {"Specify a conda environment or container for each rule."}


TOOLS = {
    "ruff check": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "."],
    "snakefmt": ["snakefmt", "--check", "--compact-diff", "Snakefile", "workflow"],
    "mypy": ["mypy"],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_linters_and_the_type_checker_have_nothing_to_say(tool):
    command = [sys.executable, "-m", *TOOLS[tool]]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, (run.stdout + run.stderr)[-3000:]


def test_no_machine_path_or_private_word_is_in_the_tree():
    """What is committed holds nothing of the machine that it was written on."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    private = re.compile(re.escape(str(ROOT)) + r"|" + re.escape(os.path.expanduser("~") + "/"))
    for name in listed.stdout.split():
        path = ROOT / name
        if path.is_file() and path.suffix in (
            ".py",
            ".md",
            ".yaml",
            ".json",
            ".smk",
            ".toml",
            ".svg",
            ".lock",
            "",
        ):
            assert not private.search(path.read_text(errors="ignore")), name


@pytest.mark.parametrize("slug", SLUGS)
def test_a_paper_has_an_embedded_data_set(slug):
    """A fresh clone decides claims without any mirror or network."""
    registry = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())["datasets"]
    used = load_paper(slug).scales["laptop"]["datasets"]
    kinds = {kind for name in used for source in registry[name]["sources"] for kind in source}
    assert kinds & {"package", "generate"} or load_paper(slug).synthetic


def test_only_the_fixed_names_stand_at_the_top():
    allowed = {
        "Snakefile", "workflow", "data", "dvc.yaml", "dvc.lock", "src", "config", "results", "tests", "README.md",
        "pyproject.toml", "requirements.lock", "Makefile", "LICENSE", "CITATION.cff",
    }  # fmt: skip
    found = {path.name for path in Path(ROOT).iterdir() if not path.name.startswith(".")}
    assert found <= allowed
