"""Artifacts are whole or absent, damage is noticed, and a failed job says why."""

import errno
import os
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from encore.core import job, metrics


@pytest.fixture
def snakemake(tmp_path):
    return SimpleNamespace(log=[str(tmp_path / "logs/x.log")], input=[], output=[], params=[])


WRITERS = {
    "a.json": (lambda path: job.write_json(path, {"x": [1, 2.5]}), job.read_json),
    "a.npz": (lambda path: job.write_npz(path, x=np.arange(2000.0)), job.read_npz),
    "a.parquet": (
        lambda path: job.write_parquet(path, pd.DataFrame({"x": np.arange(2000.0)})),
        job.read_parquet,
    ),
    "a.safetensors": (
        lambda path: job.write_tensors(path, {"x": torch.arange(2000.0)}),
        job.read_tensors,
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_same_content_same_bytes_and_no_leftovers(tmp_path, name):
    write, read = WRITERS[name]
    write(tmp_path / name)
    first = (tmp_path / name).read_bytes()
    write(tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert np.allclose(
        np.asarray(read(tmp_path / name)["x"])[:2], [0, 1] if name != "a.json" else [1, 2.5]
    )


@pytest.mark.parametrize("name", WRITERS)
def test_a_truncated_artifact_is_noticed(tmp_path, name):
    write, read = WRITERS[name]
    write(tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(job.DamagedArtifact, match=f"{name} is truncated or damaged.*run again"):
        read(tmp_path / name)


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "a.json"])
def test_a_flipped_byte_of_the_same_size_is_noticed(tmp_path, name):
    write, read = WRITERS[name]
    write(tmp_path / name)
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / name).write_bytes(content)
    with pytest.raises(job.DamagedArtifact):
        read(tmp_path / name)


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), job.replacing(path) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_failing_job_shows_the_tail_of_its_log(snakemake, capsys):
    with pytest.raises(SystemExit), job.job(snakemake):
        for i in range(50):
            print("line", i)
        raise ValueError("the width is negative")
    shown = capsys.readouterr().err
    assert "x.log" in shown
    assert "ValueError: the width is negative" in shown
    assert "line 1\n" not in shown


def test_no_space_is_named_as_the_cause(snakemake, capsys):
    with pytest.raises(SystemExit), job.job(snakemake):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "results/x.npz")
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert "No space left on device (results/x.npz). Free space" in last


@contextmanager
def as_nobody():
    """Root may write anywhere: act as another user meanwhile."""
    user = os.geteuid()
    os.seteuid(65534 if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)


def test_no_write_permission_is_named_as_the_cause(snakemake, tmp_path, capsys):
    (tmp_path / "closed").mkdir(mode=0o555)
    with pytest.raises(SystemExit), job.job(snakemake), as_nobody():
        job.write_json(tmp_path / "closed/x.json", {})
    assert "Permission denied" in capsys.readouterr().err.strip().splitlines()[-1]


def test_scalars_and_columns_are_joined_into_rows(tmp_path):
    table = metrics.Table("demo")
    table.add(dataset="d", method=["a", "b"], seed=0, metric="m", value=[1, 2], k=[3, 4])
    table.add(dataset="d", method="a", seed=0, metric="s", value=0.5, unit="s", timing=True)
    table.write(tmp_path / "runs.parquet")
    table.write_timings(tmp_path / "timings.parquet")
    runs = metrics.collect([tmp_path / "runs.parquet"])
    assert runs[["paper", "method", "value", "k"]].to_numpy().tolist() == [
        ["demo", "a", 1, 3],
        ["demo", "b", 2, 4],
    ]
    assert metrics.collect([tmp_path / "timings.parquet"])["metric"].tolist() == ["s"]
    assert metrics.summary(runs) == {"d": {"m": {"a": 1.0, "b": 2.0}}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"value": np.nan}, "without a reason: m of a on d, seed 0"),
        ({"value": [1, 2, 3], "k": [1, 2]}, "k has 2 entries; expected 1 or 3"),
        ({"better": "up"}, "better='up'"),
    ],
)
def test_bad_rows_are_refused(fields, message):
    row = {"dataset": "d", "method": "a", "seed": 0, "metric": "m", "value": 1.0}
    with pytest.raises(ValueError, match=message):
        metrics.Table("demo").add(**row | fields)


def test_a_value_that_is_missing_for_a_reason_is_kept(tmp_path):
    table = metrics.Table("demo")
    table.add(dataset="d", method="a", seed=0, metric="m", value=np.nan, reason="cut off at 60 s")
    table.write(tmp_path / "runs.parquet")
    assert metrics.read(tmp_path / "runs.parquet")["reason"].tolist() == ["cut off at 60 s"]
