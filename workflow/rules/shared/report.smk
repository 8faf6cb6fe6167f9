# The site of verdicts: papers of this run are brought up to date first, others appear as they are.
from pathlib import Path

from encore.core.config import known_slugs
from encore.core.sources import code

RESULTS = f"results/{study.scale}"
JUDGED = [
    f"{RESULTS}/{slug}/{kind}.json" for slug in papers for kind in ("claims", "speed", "metrics")
]
DRAWN = [
    f"{RESULTS}/{slug}/{folder}/{name}.svg"
    for slug in papers
    for folder, key in (("figures", "figures"), ("timings", "timed_figures"))
    for name in papers[slug][key]
]


rule report_site:
    input:
        JUDGED,
        DRAWN,
        config=expand("config/papers/{slug}.yaml", slug=known_slugs()),
        settings=expand("src/encore/settings/{slug}.py", slug=known_slugs()),
        costs=[path for path in ["results/costs.json"] if Path(path).exists()],
        templates=sorted(map(str, Path("src/encore/core/templates/report").iterdir())),
        code=code("shared/report.py"),
    output:
        expand(f"{RESULTS}/report/{{name}}", name=["index.html", "style.css", "app.js"]),
        expand(f"{RESULTS}/report/{{slug}}.html", slug=known_slugs()),
    log:
        f"{RESULTS}/logs/report.log",
    localrule: True
    params:
        scale=study.scale,
    script:
        "../../scripts/shared/report.py"
