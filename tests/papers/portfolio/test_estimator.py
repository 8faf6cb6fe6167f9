import doctest
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

from encore.core.sources import ROOT
from encore.papers.portfolio import Feasibility, PortfolioSelector
from encore.papers.portfolio.cli import app


def test_selector_serves_with_kept_models_only(make):
    archive, profiles = make(0, n=40, m=300, columns=4, levels=30)
    _, others = make(99, n=40, m=200, columns=4, levels=30)
    for prefer in (None, "accuracy", "latency"):
        selector = clone(PortfolioSelector(4, prefer=prefer)).fit(archive, profiles)
        served = selector.predict(others)
        kept = selector.portfolio_.indices
        rows = Feasibility.build(archive, others).rows(np.arange(40))
        assert set(served.tolist()) <= {-1, *kept.tolist()}
        assert np.array_equal(served >= 0, rows[kept].any(axis=0))
        some = np.flatnonzero(served >= 0)
        assert rows[served[some], some].all()
        if prefer:
            utility = archive.utility[:, archive.column(prefer)]
            best = np.where(rows[kept], utility[kept][:, None], -np.inf).max(axis=0)
            assert np.array_equal(utility[served[some]], best[some])
        assert selector.score(others) == pytest.approx(
            Feasibility.build(archive, others).coverage(kept)
        )


def test_selector_errors(make):
    archive, profiles = make(0)
    with pytest.raises(NotFittedError):
        PortfolioSelector(2).predict(profiles)
    with pytest.raises(ValueError, match="unknown column"):
        PortfolioSelector(2, prefer="speed").fit(archive, profiles)


@pytest.fixture
def files(tmp_path):
    pd.DataFrame(
        {"accuracy": [91.0, 88.0, 80.0], "latency": [9.0, 4.0, 1.0], "note": ["x", "y", "z"]},
        index=pd.Index(["large", "medium", "tiny"], name="model"),
    ).to_csv(tmp_path / "archive.csv")
    pd.DataFrame(
        {"accuracy>=": [90, 85, 75, 95], "latency<=": [10, 5, None, 2], "weight": [1, 3, 1, 5]}
    ).to_csv(tmp_path / "profiles.csv", index=False)
    return tmp_path


def test_command(files):
    out = files / "portfolio.json"
    arguments = ["select", str(files / "archive.csv"), str(files / "profiles.csv")]
    result = CliRunner().invoke(app, [*arguments, "--k", "2", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "100.0 % of the feasible profiles, 50.0 % of all" in result.output
    found = json.loads(out.read_text())
    assert found["names"] == ["medium", "large"]
    assert found["serves"] == {"medium": [1, 2], "large": [0, 2]}
    assert found["unserved"] == found["infeasible"] == [3]
    assert json.loads(CliRunner().invoke(app, [*arguments, "--k", "1"]).output)["names"] == [
        "medium"
    ]


def test_command_errors_are_one_line(files):
    arguments = ["select", str(files / "archive.csv"), str(files / "none.csv")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "none.csv" in result.output
    (files / "bad.csv").write_text("energy<=\n1\n")
    result = CliRunner().invoke(app, ["select", str(files / "archive.csv"), str(files / "bad.csv")])
    assert result.exit_code == 2
    assert "lacks the column 'energy'" in result.output


def test_method_card_runs():
    text = (ROOT / "src/encore/papers/portfolio/README.md").read_text()
    block = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL).group(1)
    parsed = doctest.DocTestParser().get_doctest(block, {}, "README", "README.md", 0)
    assert doctest.DocTestRunner().run(parsed).failed == 0
