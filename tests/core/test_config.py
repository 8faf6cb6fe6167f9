"""Mistakes in the configuration are one line that names the file, the key and what was expected."""

import pytest
import yaml

from encore.core.config import ConfigError, Study, load_study


def test_unknown_scale_names_the_known_ones():
    with pytest.raises(ConfigError, match="scale: .*'smoke', 'laptop' or 'paper'.*found 'lptop'"):
        load_study({"scale": "lptop"})


def test_unknown_option_names_the_known_ones():
    with pytest.raises(ConfigError, match="unknown key 'scael'; did you mean 'scale'.*mirrors"):
        load_study({"scael": "smoke"})


def test_unknown_paper_names_the_known_ones():
    with pytest.raises(
        ConfigError, match="papers: unknown 'lyapunov_observr'; did you mean 'lyapunov_observer'"
    ):
        load_study({"papers": ["lyapunov_observr"]})


def edit(path, keys, value):
    """Set (or with ``...`` delete) one key of a YAML file."""
    content = yaml.safe_load(path.read_text())
    section = content
    for key in keys[:-1]:
        section = section[key]
    if value is ...:
        del section[keys[-1]]
    else:
        section[keys[-1]] = value
    path.write_text(yaml.safe_dump(content))


MISTAKES = [
    (["scales", "laptop", "train_shar"], 0.5, "scales.laptop: unknown key 'train_shar'; did you mean 'train_share'"),
    (["scales", "laptop", "train_share"], 1.5, "scales.laptop: train_share: Input should be less than 1 (found 1.5)"),
    (["scales", "laptop", "seeds"], ..., "scales.laptop: seeds: Field required"),
    (["scales", "tiny"], {}, "'smoke', 'laptop' or 'paper'"),
    (["scales", "smoke"], ..., "scales lacks ['smoke']"),
    (["titel"], "x", "unknown key 'titel'; did you mean 'title'"),
    (["claims", 0, "datasets"], ["mnist"], "claim c1 is on ['mnist']; known: ['digits']"),
    (["claims", 0, "checks", 0, "metric"], ..., "metric: Field required"),
    (["claims", 0, "checks", 0, "compare"], "differnce", "Input tag 'differnce' found using 'compare' does not match any of the expected tags: 'bound'"),
    (["claims", 0, "checks", 0, "clutser"], ["x"], "unknown key 'clutser'; did you mean 'cluster'"),
    (["tuned_on"], {"seeds": [100], "what": "width"}, "laptop judges on the seeds [100] that were tuned on"),
    (["scales", "laptop", "datasets"], ["digts"], "unknown data set 'digts'"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "value", "message"), MISTAKES)
def test_a_mistake_in_a_paper_is_one_line_before_any_job(demo, keys, value, message):
    edit(demo.root / "config/papers/demo_paper.yaml", keys, value)
    # whether a data set exists is asked when the workflow is planned
    planned = "data set" in message
    run = (
        demo.snakemake("--dry-run", check=False)
        if planned
        else demo.run("encore", "list", check=False)
    )
    assert run.returncode != 0
    assert message in (run.stdout + run.stderr).replace('"', "'")
    assert "Traceback" not in run.stdout + run.stderr


def test_snakemake_shows_the_same_line(demo):
    edit(demo.root / "config/papers/demo_paper.yaml", ["scales", "laptop", "train_shar"], 0.5)
    run = demo.snakemake("--dry-run", check=False)
    assert (
        "config/papers/demo_paper.yaml: scales.laptop: unknown key 'train_shar'"
        in run.stdout + run.stderr
    )
    assert "Traceback" not in run.stdout + run.stderr
    run = demo.snakemake("--dry-run", "--config", "scale=huge", check=False)
    assert (
        "scale: Input should be 'smoke', 'laptop' or 'paper' (found 'huge')"
        in run.stdout + run.stderr
    )


def test_papers_come_cheapest_first(monkeypatch):
    monkeypatch.setattr(
        "encore.core.config.load_costs", lambda: {"b": {"laptop": {"core_minutes": 1.0}}}
    )
    monkeypatch.setattr("encore.core.config.known_slugs", lambda: ["a", "b"])
    assert Study().slugs == ["b", "a"]
