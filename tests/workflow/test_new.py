"""``encore new`` writes a paper whose tests and pipeline pass at once."""

import pytest

from encore.core.config import ConfigError
from encore.core.scaffold import new_paper
from tests.conftest import copy_tree


@pytest.fixture
def checkout(tmp_path):
    """A copy of the whole repository, tests included."""
    import shutil

    from encore.core.config import ROOT

    copy = copy_tree(tmp_path / "copy")
    shutil.copytree(ROOT / "tests", copy.root / "tests", dirs_exist_ok=True)
    return copy


def test_a_new_paper_passes_its_tests_and_its_smoke_run(checkout):
    checkout.run("encore", "new", "demo_paper")
    checkout.snakemake("--config", "scale=smoke", "papers=[demo_paper]", "--", "demo_paper")
    assert (checkout.root / "results/smoke/demo_paper/claims.json").exists()
    checkout.run(
        "pytest", "-q", "-p", "no:cacheprovider", "-k", "demo_paper and not smoke", "tests"
    )
    assert "demo_paper" in (checkout.root / "README.md").read_text()


@pytest.mark.parametrize(
    ("slug", "message"), [("Demo-Paper", "expected lower-case"), ("portfolio", "is taken")]
)
def test_a_bad_or_taken_slug_is_refused(tmp_path, slug, message):
    with pytest.raises(ConfigError, match=message):
        new_paper(slug, tmp_path)
    assert list(tmp_path.iterdir()) == []
