"""What the workflow itself costs: planning, the overhead of a job, imports.  Prints ratios; asserts nothing."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from encore.core.config import ROOT
from encore.core.scaffold import new_paper
from tests.conftest import Checkout, demo_checkout

PAPERS, PARTS = 38, 36  # with prepare, collect, judge and figures about 40 jobs a paper

FAN_OUT = """
RUNS = collect("<results>/runs/{{dataset}}/{{part}}.parquet", dataset=config["datasets"], part=[f"p{{i}}" for i in range({parts})])
"""
FLAT = """
PAPERS = [f"paper{{i:02d}}" for i in range({papers})]
rule all:
    input: expand("out/{{paper}}/claims.json", paper=PAPERS), expand("out/{{paper}}/figure.svg", paper=PAPERS)
rule prepare:
    output: "out/{{paper}}/data.npz"
    shell: "touch {{output}}"
rule evaluate:
    input: "out/{{paper}}/data.npz"
    output: "out/{{paper}}/runs/{{part}}.parquet"
    shell: "touch {{output}}"
rule collect:
    input: expand("out/{{{{paper}}}}/runs/{{part}}.parquet", part=[f"p{{i}}" for i in range({parts})])
    output: "out/{{paper}}/metrics.parquet"
    shell: "touch {{output}}"
rule judge:
    input: "out/{{paper}}/metrics.parquet"
    output: "out/{{paper}}/claims.json"
    shell: "touch {{output}}"
rule figures:
    input: "out/{{paper}}/metrics.parquet"
    output: "out/{{paper}}/figure.svg"
    shell: "touch {{output}}"
"""


def seconds(call, repeats=3):
    """Median time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def many_papers(folder):
    """A tree of 38 scaffolded papers with about 40 jobs each."""
    checkout = demo_checkout(folder)
    for path in (folder / "config/papers").glob("*.yaml"):
        path.unlink()
    for i in range(PAPERS):
        slug = f"paper{i:02d}"
        new_paper(slug, folder)
        rules = folder / f"workflow/rules/{slug}.smk"
        text = rules.read_text()
        old = next(line for line in text.splitlines() if line.startswith("RUNS"))
        text = text.replace(old, FAN_OUT.format(parts=PARTS).strip())
        rules.write_text(
            text.replace("runs/{dataset}.parquet", "runs/{dataset}/{part}.parquet").replace(
                "evaluate/{dataset}", "evaluate/{dataset}/{part}"
            )
        )
    return checkout


def flat(folder):
    """As many jobs in one flat Snakefile without Encore."""
    folder.mkdir()
    (folder / "Snakefile").write_text(FLAT.format(papers=PAPERS, parts=PARTS))
    return Checkout(folder)


def plan(checkout):
    """A dry run; returns its number of jobs."""
    run = checkout.run("snakemake", "--dry-run", "--quiet", "all", "--cores", "2")
    return run


def main():
    """Print the table."""
    here = Checkout(ROOT)
    with tempfile.TemporaryDirectory() as name:
        many, bare = many_papers(Path(name) / "many"), flat(Path(name) / "flat")
        a, b = seconds(lambda: plan(many)), seconds(lambda: plan(bare))
        print(
            f"snakemake -n, {PAPERS} papers x {PARTS + 4} jobs: {a:.2f} s; flat Snakefile: {b:.2f} s; ratio {a / b:.2f}"
        )
        demo = demo_checkout(Path(name) / "demo")
        script = "import numpy, pandas, pyarrow.parquet, encore.core.job, encore.core.metrics"
        plain = seconds(lambda: run_code(script))
        demo.snakemake("--", "data_digits")
        job = one_job(demo)
        print(
            f"one job of a rule: {job:.2f} s more than its process; the imports of a typical script: {plain:.2f} s"
        )
    print(f"snakemake -n on this tree: {seconds(lambda: plan(here)):.2f} s")
    empty = seconds(lambda: run_code("pass"), 9)
    print(
        f"import encore: {seconds(lambda: run_code('import encore'), 9) - empty:.3f} s (start of Python {empty:.3f} s)"
    )


def run_code(program):
    """Start Python on a program."""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def one_job(demo):
    """Time that Snakemake adds to a job: the same run with six and with one more forced job."""
    demo.snakemake()
    every = seconds(
        lambda: demo.snakemake(
            "--forcerun", "demo_paper_prepare", "--", "results/laptop/demo_paper/data/digits.npz"
        )
    )
    none = seconds(lambda: demo.snakemake("--", "results/laptop/demo_paper/data/digits.npz"))
    process = seconds(lambda: run_code("import numpy, encore.core.job"))
    return every - none - process


if __name__ == "__main__":
    main()
