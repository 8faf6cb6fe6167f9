"""The Slurm profile on a real Slurm of one node: a paper's smoke run, with one job killed on the way."""

import json
import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from encore.core.config import ROOT
from tests.conftest import copy_tree

SLUG = "portfolio"
DAEMONS = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
NEEDED = ("slurmctld", "slurmd", "munged", "sbatch")
LACKING = [name for name in NEEDED if not shutil.which(name, path=DAEMONS)]
pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="starting a Slurm needs root"),
    pytest.mark.skipif(
        bool(LACKING), reason=f"not installed: {', '.join(LACKING)} (slurm-wlm, munge)"
    ),
]


CONFIGURATION = Path("/etc/slurm/slurm.conf")
OURS = "# written by Encore's test"


@pytest.fixture(scope="module")
def slurm():
    """A Slurm of one node on this machine, gone afterwards; never a cluster that is there already."""
    if CONFIGURATION.exists() and not CONFIGURATION.read_text().startswith(OURS):
        pytest.skip(f"this machine belongs to a cluster ({CONFIGURATION} is not from this test)")
    start = subprocess.run(
        ["bash", Path(__file__).parent / "one_node.sh"], capture_output=True, text=True, check=False,
        env=os.environ | {"PATH": DAEMONS},
    )  # fmt: skip
    if start.returncode:
        pytest.skip(f"Slurm did not start: {start.stderr.strip()[-500:]}")
    yield
    for name in ("slurmd", "slurmctld", "munged"):
        subprocess.run(["pkill", "-x", name], check=False)
    CONFIGURATION.unlink()  # Slurm's tools would wait long for a controller that is gone


def cancel_one_running_job(cancelled, stop):
    """Wait for the first job that runs, and cancel it."""
    while not stop.is_set() and not cancelled:
        listed = subprocess.run(
            ["squeue", "-h", "-t", "R", "-o", "%i"], capture_output=True, text=True, check=False
        )
        for number in listed.stdout.split()[:1]:
            subprocess.run(["scancel", "--signal=KILL", "--full", number], check=True)
            subprocess.run(["scancel", number], check=True)
            cancelled.append(number)
        time.sleep(0.2)


def test_a_paper_runs_through_slurm_and_a_killed_job_is_tried_again(slurm, smoke, tmp_path):
    checkout = copy_tree(tmp_path / "copy")
    (checkout.root / "data").symlink_to(ROOT / "data")
    cancelled, stop = [], threading.Event()
    killer = threading.Thread(target=cancel_one_running_job, args=(cancelled, stop))
    killer.start()
    try:
        run = checkout.run(
            "snakemake", "--profile", "workflow/profiles/slurm", "--config", "scale=smoke",
            f"papers=[{SLUG}]", "--", SLUG, timeout=900,
        )  # fmt: skip
    finally:
        stop.set()
        killer.join()
    printed = run.stdout + run.stderr
    assert cancelled
    assert re.search(r"Trying to restart job", printed)
    assert len(set(re.findall(r"SLURM jobid (\d+)", printed))) > 5
    through_slurm = json.loads((checkout.root / f"results/smoke/{SLUG}/claims.json").read_text())
    assert through_slurm == json.loads((smoke / SLUG / "claims.json").read_text())
