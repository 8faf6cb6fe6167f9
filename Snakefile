from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

from encore.core.config import ConfigError, load_study

min_version("9.20")


configfile: "config/config.yaml"


try:
    study = load_study(config)
    papers = {slug: study.settings(slug) for slug in study.slugs}
except ConfigError as error:
    raise WorkflowError(str(error)) from None


report: "workflow/report/overview.rst"


include: "workflow/rules/shared/data.smk"


for slug, settings in papers.items():
    prefix = f"{slug}_"

    module:
        name: slug
        pathvars:
            results=f"results/{study.scale}/{slug}",
            logs=f"results/{study.scale}/{slug}/logs",
            benchmarks=f"results/{study.scale}/{slug}/benchmarks",
        snakefile:
            f"workflow/rules/{slug}.smk"
        config:
            settings

    use rule * from slug as prefix*

    rule:
        name:
            slug
        input:
            getattr(rules, f"{slug}_all").input,
        localrule: True


include: "workflow/rules/shared/report.smk"


rule all:
    default_target: True
    input:
        [getattr(rules, slug).input for slug in papers],
        rules.report_site.output,
    localrule: True
