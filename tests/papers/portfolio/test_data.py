import bz2
import collections
import io
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from encore.papers.portfolio import Archive
from encore.papers.portfolio.data import (
    FAMILIES,
    RestrictedUnpickler,
    convert_help,
    digits_zoo,
    hwnasbench_full,
    nb201_hw,
    parameters,
)

ARCHITECTURES = [
    "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|",
    "|none~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_1x1~2|",
]


def test_parameters_are_those_of_the_benchmark():
    assert parameters(ARCHITECTURES[0], 10) == 1_531_546
    assert parameters(ARCHITECTURES[1], 10) - parameters("", 10) == 5 * (
        16**2 + 32**2 + 64**2 + 2 * (16 + 32 + 64)
    )
    with pytest.raises(ValueError, match="classes=0"):
        parameters("", 0)


def test_parameters_agree_with_a_network_built_in_torch():
    from torch import nn

    def conv(c_in, c_out, size):
        return [nn.Conv2d(c_in, c_out, size, bias=False), nn.BatchNorm2d(c_out)]

    layers = conv(3, 16, 3)
    for channels in (16, 32, 64):
        if channels > 16:
            half = channels // 2
            layers += [*conv(half, channels, 3), *conv(channels, channels, 3)]
            layers.append(nn.Conv2d(half, channels, 1, bias=False))
        for _ in range(5):
            for _ in range(6):
                layers += conv(channels, channels, 3)
    layers += [nn.BatchNorm2d(64), nn.Linear(64, 10)]
    total = sum(p.numel() for p in nn.ModuleList(layers).parameters())
    assert total == parameters(ARCHITECTURES[0], 10)


def small_tables():
    rows = [
        {
            "arch_idx": arch, "device": device, "framework": framework, "task": task,
            "lat_ms_median": 1.0 + arch, "lat_ms_var": 0.01 if device == "pi5" else np.nan,
            "energy_mj": 2.0 if device == "pi5" else np.nan, "accuracy": 50.0 + arch,
        }
        for device, framework in (("pi5", "litert"), ("pi5", "onnx"), ("pi5", "torchmobile"), ("pixel", "litert"))
        for task in ("cifar100", "ninapro", "darcy")
        for arch in (1, 0)
    ]  # fmt: skip
    latency = pd.DataFrame({"arch_idx": [0, 1], "arch_str": ARCHITECTURES})
    for device in ("fpga", "raspi4", "eyeriss", "pixel3", "gold_6226", "2080ti_1"):
        latency[f"lat_{device}_ms"] = [3.0, 4.0]
    return pd.DataFrame(rows), latency


def test_eighteen_families_of_a_small_table():
    table = nb201_hw(*small_tables())
    assert table["family"].nunique() == 18
    fpga = table[table["family"] == "fpga-cifar100"]
    assert fpga["energy"].tolist() == [21.0, 28.0]
    assert fpga["accuracy"].tolist() == [50.0, 51.0]
    pi5 = table[table["family"] == "pi5-onnx-darcy"]
    assert pi5["latency_cv"].tolist() == pytest.approx([0.1, 0.05])
    assert pi5["memory"].tolist() == [parameters(text, 1) for text in ARCHITECTURES]
    assert table.loc[table["family"] == "pixel-litert-darcy", "energy"].isna().all()


def test_a_missing_network_is_named():
    boards, latency = small_tables()
    with pytest.raises(ValueError, match="pixel-litert-darcy"):
        nb201_hw(boards.iloc[:-1], latency)


def test_families_are_named():
    assert len(Archive.families()) == len(FAMILIES) == 18
    with pytest.raises(ValueError, match="expected one of"):
        Archive.load_nb201_hw("pi6")


def test_the_real_archive(dataset):
    archive = Archive.load_nb201_hw("pi5-litert-cifar100", dataset("nb201_hw"))
    accuracy = archive.values[:, 0]
    assert (len(archive), archive.columns) == (
        15_625,
        ("accuracy", "latency", "energy", "memory"),
    )
    assert accuracy.argmax() == 9930
    assert accuracy[9930] == pytest.approx(73.5133, abs=1e-4)
    assert len(archive.pareto()) < 1562


def test_zoo_families():
    rows = [
        {"task": "digits", "model": name, "batch": batch, "accuracy": 90.0, "memory_kb": 1.0,
         "latency_ms": 0.1, "latency_cv": 0.01}
        for name in ("a", "b") for batch in (1, 16)
    ]  # fmt: skip
    table = digits_zoo(pd.DataFrame(rows))
    assert table["family"].unique().tolist() == ["digits-batch1", "digits-batch16"]


class Evil:
    def __reduce__(self):
        return (print, ("this must not run",))


def write_pickles(folder: Path, payload=None) -> tuple[Path, Path]:
    """A small HW-NAS-Bench pickle and a NATS-Bench tar in their formats."""
    metrics = ["edgegpu_latency", "edgegpu_energy", "raspi4_latency", "edgetpu_latency"]
    metrics += [
        "pixel3_latency",
        "eyeriss_latency",
        "eyeriss_energy",
        "fpga_latency",
        "fpga_energy",
    ]
    tasks = ("cifar10", "cifar100", "ImageNet16-120")
    hardware = {
        task: {m: [np.float64(i + 1.0) for i in range(2)] for m in metrics} for task in tasks
    }
    hardware["cifar10"]["edgetpu_latency"][1] = -1.0
    pickled = folder / "HW-NAS-Bench-v1_0.pickle"
    pickled.write_bytes(pickle.dumps({"nasbench201": hardware, "fbnet": payload or {}}, protocol=2))
    tar = folder / "nats.tar"
    with tarfile.open(tar, "w") as archive:
        for i, text in enumerate(ARCHITECTURES):
            trials = {}
            for task in tasks:
                part = "ori-test" if task == "cifar10" else "x-test"
                for seed in (777, 888):
                    accuracy = collections.OrderedDict({f"{part}@199": 60.0 + i + seed / 1000})
                    trials[task, seed] = {"epochs": 200, "eval_acc1es": accuracy}
            body = bz2.compress(pickle.dumps({"200": {"arch_str": text, "all_results": trials}}))
            member = tarfile.TarInfo(f"NATS-tss-v1_0-3ffb9-simple/{i:06d}.pickle.pbz2")
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return pickled, tar


def test_full_benchmark_is_converted(tmp_path):
    table = hwnasbench_full(*write_pickles(tmp_path))
    assert table["family"].nunique() == 18
    edgetpu = table[table["family"] == "edgetpu-cifar10"]
    assert edgetpu["latency"].isna().tolist() == [False, True]
    assert edgetpu["accuracy"].tolist() == pytest.approx([60.8325, 61.8325])
    assert table.loc[table["family"] == "fpga-cifar100", "energy"].tolist() == [1.0, 2.0]


def test_pickles_that_call_anything_are_refused(tmp_path, capsys):
    with pytest.raises(pickle.UnpicklingError, match="print, which is not allowed"):
        hwnasbench_full(*write_pickles(tmp_path, payload={"x": Evil()}))
    assert capsys.readouterr().out == ""
    array = pickle.dumps({"x": np.arange(3.0), "y": np.float64(2.0)})
    assert RestrictedUnpickler(io.BytesIO(array)).load()["x"].tolist() == [0.0, 1.0, 2.0]


def test_latency_tables_are_converted_there_and_back(dataset, tmp_path):
    import torch

    expected = pd.read_parquet(dataset("nb201_hw") / "help_nb201_latency.parquet")
    index = dict(zip(expected["arch_str"], expected["arch_idx"].tolist(), strict=True))
    torch.save(index, tmp_path / "str_arch2idx.pt")
    for device in ("fpga", "raspi4", "eyeriss", "pixel3", "gold_6226", "2080ti_1"):
        torch.save(expected[f"lat_{device}_ms"].tolist(), tmp_path / f"{device}.pt")
    convert_help(tmp_path, tmp_path / "out.parquet")
    found = pd.read_parquet(tmp_path / "out.parquet")
    pd.testing.assert_frame_equal(found, expected[found.columns])
    index[expected["arch_str"][0]], index[expected["arch_str"][1]] = 1, 0
    torch.save(index, tmp_path / "str_arch2idx.pt")
    with pytest.raises(ValueError, match="architectures have sha256"):
        convert_help(tmp_path, tmp_path / "out.parquet")
