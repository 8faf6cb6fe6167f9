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


SAME_DIRECTIVES = """log: "logs/{name}{wildcards}.log"
    benchmark: "benchmarks/{name}{wildcards}.jsonl"
    threads: 1
    resources: mem_mb=1000, runtime=5
    params: seeds=[100, 101, 102], share=0.5
    script: "job.py\""""


def flat(folder, full):
    """As many jobs in one flat Snakefile without Encore: bare rules, or ``full`` ones like ours."""
    folder.mkdir()
    text, name = FLAT.format(papers=PAPERS, parts=PARTS), ""
    lines = []
    for line in text.splitlines():
        name = line[5:-1] if line.startswith("rule ") else name
        wildcards = "-{paper}-{part}" if name == "evaluate" else "-{paper}"
        bare = 'shell: "touch {output}"'
        same = SAME_DIRECTIVES.format(name=name, wildcards=wildcards)
        lines.append(line.replace(bare, same) if full else line)
    (folder / "Snakefile").write_text("\n".join(lines))
    (folder / "job.py").write_text("")
    return Checkout(folder)


def plan(checkout):
    """A dry run."""
    checkout.run("snakemake", "--dry-run", "--quiet", "all", "--cores", "2")


def main():
    """Print the table."""
    here = Checkout(ROOT)
    with tempfile.TemporaryDirectory() as name:
        trees = (
            many_papers(Path(name) / "many"),
            *(flat(Path(name) / f"flat{i}", i) for i in (0, 1)),
        )
        ours, bare, full = (seconds(lambda tree=tree: plan(tree)) for tree in trees)
        print(f"snakemake -n, {PAPERS} papers x {PARTS + 4} jobs: {ours:.2f} s")
        print(
            f"  a flat Snakefile, rules with the same directives: {full:.2f} s, ratio {ours / full:.2f}"
        )
        print(f"  a flat Snakefile, bare rules: {bare:.2f} s, ratio {ours / bare:.2f}")
        script = "import numpy, pandas, pyarrow.parquet, encore.core.job, encore.core.metrics"
        plain = seconds(lambda: run_code(script))
        job = one_job(demo_checkout(Path(name) / "demo"))
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
    """Time that Snakemake adds to a job: a run with one forced job, without it, and its process alone."""
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
