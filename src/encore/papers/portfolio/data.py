"""The archives: NAS-Bench-201 networks as measured on real hardware, and our own zoo.

All become one table with a row per family and model: ``family, model, label, accuracy, latency, energy,
memory, latency_cv``; the label says what the model is; a family is a task on a device, ``energy`` and ``latency_cv`` (relative spread of repeated
measurements) are NaN where nobody measured them.
"""

import bz2
import hashlib
import io
import pickle
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from encore.papers.portfolio.archive import Archive

COLUMNS = ["family", "model", "label", "accuracy", "latency", "energy", "memory", "latency_cv"]
SENSE = {"accuracy": "max", "latency": "min", "energy": "min", "memory": "min"}

_BOARDS = [("pi5", "litert"), ("pi5", "onnx"), ("pi5", "torchmobile"), ("pixel", "litert")]
_TASKS = {"cifar100": 100, "ninapro": 18, "darcy": 1}  # classes (outputs) of each task
_DEVICES = ("fpga", "raspi4", "eyeriss", "pixel3", "gold_6226", "2080ti_1")
_FPGA_MJ_PER_MS = 7.0  # exact in HW-NAS-Bench

#: The 18 families of ``nb201_hw``: (device, framework, task), the last six without a framework.
FAMILIES: dict[str, tuple[str, str, str]] = {
    f"{device}-{framework}-{task}": (device, framework, task)
    for device, framework in _BOARDS
    for task in _TASKS
} | {f"{device}-cifar100": (device, "", "cifar100") for device in _DEVICES}


def parameters(architecture: str, classes: int) -> int:
    """Number of parameters of a NAS-Bench-201 network, exact, from its architecture string.

    Five cells in each of three stages of 16, 32 and 64 channels; a 3x3 convolution has 9 C^2 + 2 C
    parameters with its batch norm, a 1x1 convolution C^2 + 2 C, everything else in a cell none.  Stem,
    two reduction blocks and the last batch norm have 464 + 14,464 + 57,600 + 128, the classifier 65 per
    class.

    Raises:
        ValueError: ``classes`` < 1.
    """
    if classes < 1:
        raise ValueError(f"classes={classes}; expected at least 1")
    total = 464 + 14_464 + 57_600 + 128 + 65 * classes
    wide, narrow = architecture.count("nor_conv_3x3"), architecture.count("nor_conv_1x1")
    for channels in (16, 32, 64):
        total += 5 * wide * (9 * channels**2 + 2 * channels)
        total += 5 * narrow * (channels**2 + 2 * channels)
    return total


def nb201_hw(hwnas360: pd.DataFrame, help_latency: pd.DataFrame) -> pd.DataFrame:
    """The 18 families of ``nb201_hw`` as one table.

    Args:
        hwnas360: rows of HW-NAS-Bench-360 (arch_idx, device, framework, task, lat_ms_median, ...).
        help_latency: a row per network: arch_idx, arch_str, ``lat_<device>_ms``.

    Returns:
        18 x N rows; latency in ms, energy in mJ, memory in parameters, accuracy in % (``darcy``: score).

    Raises:
        ValueError: a family is missing or does not have every network once.
    """
    help_latency = help_latency.sort_values("arch_idx", ignore_index=True)
    names = help_latency["arch_idx"].to_numpy()
    memory = {
        task: help_latency["arch_str"].map(lambda text, c=classes: parameters(text, c)).to_numpy()
        for task, classes in _TASKS.items()
    }
    groups = dict(iter(hwnas360.groupby(["device", "framework", "task"])))
    first = groups.get(("pi5", "litert", "cifar100"))
    frames = []
    for family, (device, framework, task) in FAMILIES.items():
        if framework:
            frame = _board(family, groups.get((device, framework, task)), names)
        else:
            frame = _device(device, help_latency, _board(family, first, names)["accuracy"])
        facts = {"family": family, "model": names, "label": help_latency["arch_str"]}
        frames.append(frame.assign(**facts, memory=memory[task].astype(float)))
    return pd.concat(frames, ignore_index=True)[COLUMNS]


def _board(family: str, rows: pd.DataFrame | None, names: np.ndarray) -> pd.DataFrame:
    if rows is None:
        raise ValueError(f"hwnas360 has no rows of the family {family!r}")
    rows = rows.sort_values("arch_idx", ignore_index=True)
    if not np.array_equal(rows["arch_idx"], names):
        raise ValueError(f"family {family!r} does not have each of {len(names)} networks once")
    return pd.DataFrame(
        {
            "accuracy": rows["accuracy"],
            "latency": rows["lat_ms_median"],
            "energy": rows["energy_mj"],
            "latency_cv": np.sqrt(rows["lat_ms_var"]) / rows["lat_ms_median"],
        }
    )


def _device(device: str, help_latency: pd.DataFrame, accuracy: pd.Series) -> pd.DataFrame:
    latency = help_latency[f"lat_{device}_ms"]
    return pd.DataFrame(
        {
            "accuracy": accuracy,
            "latency": latency,
            "energy": _FPGA_MJ_PER_MS * latency if device == "fpga" else np.nan,
            "latency_cv": np.nan,
        }
    )


def digits_zoo(table: pd.DataFrame) -> pd.DataFrame:
    """The families task x batch size of ``digits_zoo``; latency in ms per sample, memory in kB."""
    renamed = table.assign(
        family=table["task"] + "-batch" + table["batch"].astype(str),
        latency=table["latency_ms"],
        memory=table["memory_kb"],
        label=table["model"],
        energy=np.nan,
    )
    return renamed[COLUMNS].sort_values(["family", "model"], ignore_index=True)


def archive_of(table: pd.DataFrame) -> Archive:
    """The archive of one family's rows; columns that nobody measured are left out.

    Raises:
        ValueError: as ``Archive``; a column that only some models lack counts as never met.
    """
    sense = {name: sense for name, sense in SENSE.items() if table[name].notna().any()}
    return Archive(table.set_index("model")[list(sense)], sense, missing="infeasible")


def load_nb201_hw(family: str, folder: str | Path = "data/nb201_hw") -> Archive:
    """See ``Archive.load_nb201_hw``."""
    if family not in FAMILIES:
        raise ValueError(f"family={family!r}; expected one of {list(FAMILIES)}")
    folder = Path(folder)
    table = nb201_hw(
        pd.read_parquet(folder / "hwnas360.parquet"),
        pd.read_parquet(folder / "help_nb201_latency.parquet"),
    )
    return archive_of(table[table["family"] == family])


# -- public raw files -----------------------------------------------------------------------------

# sha256 of the 15,625 architecture strings in the official order, one a line
_ORDER = "83abc799e45cf34e9d2163654668ab998b9a54d01c39e72ca1f71f2cdf356d84"


def convert_help(raw: Path, target: Path) -> None:
    """HELP's latency tables (torch files of plain lists) as one parquet table.

    Args:
        raw: folder with ``<device>.pt`` for the six devices (lists of 15,625 latencies in ms, in the
            official order) and ``str_arch2idx.pt`` (a dict from architecture string to index).
        target: the parquet file to write.

    Raises:
        ValueError: the architectures are not the 15,625 in the official order, or a list is not as long.
    """
    index = _load_plain(raw / "str_arch2idx.pt")
    architectures = sorted(index, key=index.__getitem__)
    found = hashlib.sha256("\n".join(architectures).encode()).hexdigest()
    if found != _ORDER:
        raise ValueError(f"str_arch2idx.pt: architectures have sha256 {found}, expected {_ORDER}")
    table = {
        "arch_idx": np.arange(len(architectures), dtype=np.int32),
        "arch_str": architectures,
    }
    for device in _DEVICES:
        latency = np.asarray(_load_plain(raw / f"{device}.pt"), dtype=np.float64)
        if latency.shape != (len(architectures),):
            raise ValueError(f"{device}.pt has shape {latency.shape}; expected (15625,)")
        table[f"lat_{device}_ms"] = latency
    pd.DataFrame(table).to_parquet(target, index=False)


def _load_plain(path: Path) -> Any:
    """A torch file of tensors, lists, dicts and numbers; any other object in it is refused."""
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)


# Everything else that a pickle may call could run code; these only build containers and arrays.
_ALLOWED = {
    ("collections", "OrderedDict"),
    ("_codecs", "encode"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    *(
        (module, name)
        for module in ("numpy.core.multiarray", "numpy._core.multiarray")
        for name in ("scalar", "_reconstruct")
    ),
}


class RestrictedUnpickler(pickle.Unpickler):
    """Reads containers, numbers, strings and numpy arrays; refuses every other global."""

    def find_class(self, module: str, name: str) -> Any:
        """The class that a pickle names, if it is on the list.

        Raises:
            pickle.UnpicklingError: it is not.
        """
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"the pickle names {module}.{name}, which is not allowed")
        return super().find_class(module, name)


_SETS = {"cifar10": 10, "cifar100": 100, "ImageNet16-120": 120}
_HARDWARE = {
    "edgegpu": ("edgegpu_latency", "edgegpu_energy"),
    "raspi4": ("raspi4_latency", ""),
    "edgetpu": ("edgetpu_latency", ""),
    "pixel3": ("pixel3_latency", ""),
    "eyeriss": ("eyeriss_latency", "eyeriss_energy"),
    "fpga": ("fpga_latency", "fpga_energy"),
}


def hwnasbench_full(pickled: Path, accuracies: Path) -> pd.DataFrame:
    """The 3 x 6 families of HW-NAS-Bench with the accuracies of NATS-Bench as one table.

    Args:
        pickled: ``HW-NAS-Bench-v1_0.pickle``.
        accuracies: ``NATS-tss-v1_0-3ffb9-simple.tar`` (200 epochs, mean test accuracy of all trials).

    Raises:
        pickle.UnpicklingError: a pickle names anything but containers and numpy arrays.
        ValueError: a metric is missing or has another length.
    """
    with Path(pickled).open("rb") as file:
        hardware = RestrictedUnpickler(file, encoding="latin1").load()["nasbench201"]
    quality, architectures = read_nats_bench(accuracies)
    frames = []
    for task, classes in _SETS.items():
        memory = [float(parameters(text, classes)) for text in architectures]
        for device, metrics in _HARDWARE.items():
            latency, energy = (_metric(hardware, task, name, len(memory)) for name in metrics)
            frames.append(
                pd.DataFrame(
                    {
                        "family": f"{device}-{task.lower()}",
                        "model": np.arange(len(memory)),
                        "label": architectures,
                        "accuracy": quality[task],
                        "latency": latency,
                        "energy": energy,
                        "memory": memory,
                        "latency_cv": np.nan,
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


def _metric(hardware: Mapping[str, Any], task: str, name: str, n: int) -> np.ndarray:
    """One hardware metric of all networks; entries that are not positive were not measured."""
    if not name:
        return np.full(n, np.nan)
    values = np.asarray(hardware[task][name], dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(f"{name} of {task} has shape {values.shape}; expected ({n},)")
    return np.where(values > 0, values, np.nan)


def read_nats_bench(path: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    """Test accuracy (%) of every network after 200 epochs, and the architecture strings, by index.

    Raises:
        pickle.UnpicklingError: a pickle names anything but containers and numpy arrays.
        ValueError: the indices are not 0, 1, 2, ...
    """
    found: dict[int, tuple[str, dict[str, float]]] = {}
    with tarfile.open(path) as tar:
        for member in tar:
            stem = Path(member.name).name.split(".")[0]
            if member.isfile() and stem.isdigit():
                octets = bz2.decompress(tar.extractfile(member).read())  # type: ignore[union-attr]
                found[int(stem)] = _nats_network(
                    RestrictedUnpickler(io.BytesIO(octets), encoding="latin1").load()["200"]
                )
    if sorted(found) != list(range(len(found))) or not found:
        raise ValueError(f"{path} holds {len(found)} networks, not numbered 0, 1, 2, ...")
    order = [found[i] for i in range(len(found))]
    quality = {task: np.array([accuracy[task] for _, accuracy in order]) for task in _SETS}
    return quality, [text for text, _ in order]


def _nats_network(result: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    accuracy: dict[str, list[float]] = {task: [] for task in _SETS}
    for (task, _), trial in result["all_results"].items():
        if task in accuracy:
            part = "ori-test" if task == "cifar10" else "x-test"
            accuracy[task].append(trial["eval_acc1es"][f"{part}@{trial['epochs'] - 1}"])
    return result["arch_str"], {task: float(np.mean(values)) for task, values in accuracy.items()}


READERS: dict[str, Callable[..., pd.DataFrame]] = {
    "nb201_hw": lambda hwnas360, help_latency: nb201_hw(
        pd.read_parquet(hwnas360), pd.read_parquet(help_latency)
    ),
    "digits_zoo": lambda archive: digits_zoo(pd.read_parquet(archive)),
    "hwnasbench_full": hwnasbench_full,
}
