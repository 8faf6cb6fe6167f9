"""How a run behaves: it resumes, reruns what changed and nothing else, and says why something failed."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

NOTHING = "Nothing to be done"
METHOD = "src/encore/papers/demo_paper/method.py"
SCRIPT = "workflow/scripts/demo_paper/evaluate.py"


def jobs(run):
    """Names of the rules that a (dry) run of Snakemake lists, without the paper's prefix."""
    names = re.findall(r"^(?:local)?rule (\S+):", run.stdout + run.stderr, flags=re.MULTILINE)
    return {name.removeprefix("demo_paper_") for name in names} - {
        "all",
        "demo_paper",
        "report_site",
    }


def hashes(root):
    """Digest of each artifact whose bytes must be the same on every run."""
    changing = {"logs", "benchmarks", "timings", "timings.parquet", "report"}
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not changing & set(path.relative_to(root).parts)
    }


def later(path):
    """Touch a file so that it is newer than everything else."""
    os.utime(path, (time.time() + 5, time.time() + 5))


def test_a_second_run_has_nothing_to_do(done):
    assert NOTHING in done.snakemake().stderr


def test_touching_code_without_a_change_reruns_nothing(done):
    for path in (METHOD, SCRIPT, "config/papers/demo_paper.yaml", "src/encore/core/job.py"):
        later(done.root / path)
    assert NOTHING in done.snakemake().stderr


def test_an_edit_reruns_exactly_what_it_can_affect(done):
    path = done.root / METHOD
    path.write_text(path.read_text().replace("0.5 *", "0.25 *"))
    later(path)
    run = done.snakemake("--dry-run")
    assert jobs(run) == {"evaluate", "collect", "judge", "figures"}
    assert METHOD in run.stdout + run.stderr  # the reason names the file


def test_why_explains(done):
    later(done.root / METHOD)
    assert "nothing to do" in done.run("encore", "why", "demo_paper").stdout
    path = done.root / METHOD
    path.write_text(path.read_text() + "\n# edited\n")
    later(path)
    printed = done.run("encore", "why", "demo_paper").stdout
    assert "demo_paper_evaluate" in printed
    assert METHOD in printed


def test_a_changed_setting_reruns_its_jobs(done):
    path = done.root / "config/papers/demo_paper.yaml"
    path.write_text(path.read_text().replace("104], train_share: 0.5}", "104], train_share: 0.4}"))
    assert jobs(done.snakemake("--dry-run")) == {"evaluate", "collect", "judge", "figures"}


def test_a_changed_claim_is_only_judged_again(done):
    path = done.root / "config/papers/demo_paper.yaml"
    path.write_text(path.read_text().replace('side: ">"', 'side: ">="'))
    assert jobs(done.snakemake("--dry-run")) == {"judge"}


def test_two_clean_runs_give_the_same_bytes(demo, finished_demo):
    demo.snakemake()
    results = "results/laptop/demo_paper"
    assert hashes(demo.root / results) == hashes(finished_demo.root / results) != {}


def test_one_paper_its_claims_or_a_file_can_be_asked_for(demo):
    claims = "results/laptop/demo_paper/claims.json"
    for target in ("demo_paper_claims", claims, "demo_paper", "demo_paper_figures"):
        assert "evaluate" in jobs(demo.snakemake("--dry-run", "--", target))


def slow(script):
    """Let a script of the demo wait after it has read its data."""
    text = script.read_text()
    script.write_text(
        text.replace("    table = Table", "    __import__('time').sleep(60)\n    table = Table")
    )


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_resumes_and_ends_as_an_undisturbed_one(demo, finished_demo, how):
    script = demo.root / SCRIPT
    quick = script.read_text()
    slow(script)
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--profile", "workflow/profiles/local", "--cores", "2"],
        cwd=demo.root, env=os.environ | {"PYTHONPATH": str(demo.root / "src")}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    log = demo.root / "results/laptop/demo_paper/logs/evaluate/digits.log"
    wait_for(log.exists)
    os.killpg(process.pid, how)
    process.wait(60)
    runs = demo.root / "results/laptop/demo_paper/runs"
    assert not list(runs.glob("*")) if runs.exists() else True
    prepared = demo.root / "results/laptop/demo_paper/data/digits.npz"
    before = prepared.stat().st_mtime_ns
    script.write_text(quick)
    if how == signal.SIGKILL:
        demo.snakemake("--unlock")
    demo.snakemake()
    assert prepared.stat().st_mtime_ns == before  # finished work was not done again
    results = "results/laptop/demo_paper"
    assert hashes(demo.root / results) == hashes(finished_demo.root / results)


def wait_for(condition, seconds=60):
    """Poll until the condition holds."""
    end = time.time() + seconds
    while not condition():
        assert time.time() < end, "waited in vain"
        time.sleep(0.05)


def test_a_truncated_artifact_stops_the_jobs_that_read_it(done):
    path = done.root / "results/laptop/demo_paper/data/digits.npz"
    path.write_bytes(path.read_bytes()[:1000])
    later(path)
    run = done.snakemake(check=False)
    assert run.returncode != 0
    assert "data/digits.npz is truncated or damaged" in run.stdout + run.stderr


def test_a_failing_script_shows_the_end_of_its_log(demo):
    script = demo.root / SCRIPT
    script.write_text(
        script.read_text().replace(
            "    table = Table", "    print('about to fail')\n    1 / 0\n    table = Table"
        )
    )
    run = demo.snakemake(check=False)
    printed = run.stdout + run.stderr
    assert run.returncode != 0
    assert "ZeroDivisionError" in printed
    assert "about to fail" in printed
    assert "logs/evaluate/digits.log" in printed
    judged = demo.root / "results/laptop/demo_paper/claims.json"
    assert not judged.exists()


@pytest.mark.skipif(
    os.geteuid() != 0, reason="a full disk is made with a small mount, which needs root"
)
def test_a_full_disk_is_named(demo):
    full = demo.root / "results/laptop/demo_paper/runs"
    full.mkdir(parents=True)
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", full], check=False, capture_output=True
    )
    if mount.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        (full / "filler").write_bytes(bytes(4096))
        run = demo.snakemake(check=False)
        assert run.returncode != 0
        assert "No space left on device" in run.stdout + run.stderr
        assert not (full / "digits.parquet").exists()
    finally:
        subprocess.run(["umount", full], check=True)


def test_a_blocked_data_set_blocks_its_claims_and_nothing_else(demo):
    import json

    import yaml

    registry = demo.root / "config/datasets.yaml"
    content = yaml.safe_load(registry.read_text())
    content["datasets"]["letters"] = content["datasets"]["digits"] | {
        "sources": [{"mirror": "letters"}]
    }
    registry.write_text(yaml.safe_dump(content))
    paper = demo.root / "config/papers/demo_paper.yaml"
    paper.write_text(paper.read_text().replace("datasets: [digits]", "datasets: [letters, digits]"))
    demo.snakemake()
    claims = json.loads((demo.root / "results/laptop/demo_paper/claims.json").read_text())
    assert [(c["dataset"], c["verdict"]) for c in claims] == [
        ("letters", "blocked"),
        ("digits", "reproduced"),
    ]
    assert "data set letters is not here" in claims[0]["reason"]
    assert str(Path.cwd()) not in claims[0]["reason"]


def test_the_paper_scale_plans_and_smoke_is_not_judged(demo):
    import json

    demo.snakemake("--dry-run", "--config", "scale=paper")
    demo.snakemake("--config", "scale=smoke")
    (record,) = json.loads((demo.root / "results/smoke/demo_paper/claims.json").read_text())
    assert record["verdict"] == "not judged"
    assert "smoke" in record["reason"]
