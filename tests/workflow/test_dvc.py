"""DVC records what Snakemake made: same hashes on every run, and a clone with a pull has nothing to do."""

import json
import shutil
import subprocess

import pytest
import yaml

from encore.core.config import ROOT, known_slugs
from encore.core.data import Registry
from encore.core.sources import code
from tests.conftest import Checkout, demo_checkout
from tests.workflow.test_runs import NOTHING, jobs

STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A repository whose demo paper was made by ``dvc repro`` from clean, committed and pushed."""
    folder = tmp_path_factory.mktemp("dvc")
    checkout = demo_checkout(folder / "first")
    checkout.commit()
    checkout.run("dvc", "repro", "demo_paper")
    checkout.run("dvc", "remote", "add", "--default", "store", folder / "store")
    checkout.git("add", "--all")
    checkout.git("commit", "--quiet", "--message", "results")
    checkout.run("dvc", "push")
    return checkout


@pytest.fixture
def again(recorded, tmp_path):
    """A private copy of that repository."""
    shutil.copytree(recorded.root, tmp_path / "again")
    return Checkout(tmp_path / "again")


def test_verdicts_and_figures_stand_in_git_and_artifacts_do_not(recorded):
    tracked = set(recorded.git("ls-files", "results").stdout.split())
    folder = "results/laptop/demo_paper"
    assert {
        f"{folder}/{n}"
        for n in ("claims.json", "speed.json", "metrics.json", "figures/accuracy.svg")
    } == tracked
    assert not recorded.git("ls-files", "data").stdout


def test_a_forced_second_run_gives_the_same_lock(again):
    lock = (again.root / "dvc.lock").read_bytes()
    again.run("dvc", "repro", "--force", "--single-item", "demo_paper")
    assert (again.root / "dvc.lock").read_bytes() == lock
    assert not again.git("status", "--porcelain").stdout


def test_nothing_changed_nothing_runs(again):
    assert "Data and pipelines are up to date" in again.run("dvc", "repro", "demo_paper").stdout


def test_after_clone_and_sync_snakemake_has_nothing_to_do(recorded, tmp_path):
    subprocess.run(["git", "clone", "--quiet", recorded.root, tmp_path / "clone"], check=True)
    clone = Checkout(tmp_path / "clone")
    assert jobs(clone.snakemake("--dry-run"))
    clone.run("encore", "sync")
    assert NOTHING in clone.snakemake().stderr
    shown = json.loads(clone.run("encore", "claims", "--json").stdout)
    assert shown["demo_paper"][0]["verdict"] == "reproduced"


def test_record_refuses_a_tree_that_is_not_up_to_date_then_commits(again):
    path = again.root / "config/papers/demo_paper.yaml"
    path.write_text(path.read_text().replace("104], train_share: 0.5}", "104], train_share: 0.4}"))
    refused = again.run("encore", "record", "demo_paper", check=False)
    assert refused.returncode == 2
    assert "demo_paper is not up to date" in refused.stderr
    again.snakemake()
    again.run("encore", "record", "demo_paper")
    assert "up to date" in again.run("dvc", "status", "demo_paper").stdout
    costs = json.loads((again.root / "results/costs.json").read_text())
    assert costs["demo_paper"]["laptop"]["jobs"] >= 3


def test_revisions_can_be_compared(again):
    path = again.root / "config/papers/demo_paper.yaml"
    path.write_text(path.read_text().replace("104], train_share: 0.5}", "104], train_share: 0.4}"))
    again.run("dvc", "repro", "demo_paper")
    printed = again.run("dvc", "metrics", "diff", "--json").stdout
    assert "digits.accuracy.centroid" in printed


@pytest.mark.parametrize("slug", known_slugs())
def test_a_stage_depends_on_all_code_and_data_that_runs(slug):
    """A file that a script runs, and that no dependency covers, would leave stale results unnoticed."""
    stage = STAGES[slug]
    scripts = [f"{slug}/{path.name}" for path in (ROOT / "workflow/scripts" / slug).glob("*.py")]
    needed = {f"workflow/rules/{slug}.smk", "workflow/rules/shared/paper.smk"}
    needed.add(f"src/encore/settings/{slug}.py")
    for script in ["shared/collect.py", "shared/judge.py", *scripts]:
        needed.update(code(script))
    paper = yaml.safe_load((ROOT / f"config/papers/{slug}.yaml").read_text())
    needed.update(f"data/{name}" for name in paper["scales"]["laptop"]["datasets"])
    covered = tuple(f"{dep}/" for dep in stage["deps"])
    assert [f for f in sorted(needed) if f not in stage["deps"] and not f.startswith(covered)] == []
    (params,) = stage["params"][0].values()
    assert params == ["scales.laptop", "claims"]


def test_every_data_set_has_a_stage_and_no_name_is_used_twice():
    """Data sets of the paper scale alone stay out: only laptop results are recorded."""
    papers = [
        yaml.safe_load((ROOT / f"config/papers/{slug}.yaml").read_text()) for slug in known_slugs()
    ]
    used = {name for paper in papers for name in paper["scales"]["laptop"]["datasets"]}
    registry = set(STAGES) - set(known_slugs())
    assert used <= registry <= set(Registry.load().datasets)
    assert not registry & set(known_slugs())
    for name in registry:
        assert STAGES[name]["outs"] == [f"data/{name}"]
        assert STAGES[name].get("deps", []) == Registry.load().code(name)


def test_the_lock_knows_every_stage():
    """A stage that was never recorded makes every pull fail."""
    lock = yaml.safe_load((ROOT / "dvc.lock").read_text())["stages"]
    scaffolds = {slug for slug in known_slugs() if "FILL IN" in STAGES[slug]["desc"]}
    assert set(STAGES) - scaffolds == set(lock)


@pytest.mark.parametrize("slug", known_slugs())
def test_outs_name_no_logs_benchmarks_or_timings(slug):
    outs = [next(iter(out)) if isinstance(out, dict) else out for out in STAGES[slug]["outs"]]
    folder = f"results/laptop/{slug}"
    assert {f"{folder}/claims.json", f"{folder}/figures", f"{folder}/metrics.parquet"} <= set(outs)
    allowed = {"data", "models", "runs", "figures", "claims.json", "metrics.parquet"}
    assert {out.removeprefix(f"{folder}/") for out in outs} <= allowed
