"""A small archive of our own: classifiers really trained and really measured on this machine.

Four tasks on data that ship with scikit-learn, about 200 models each, measured at three batch sizes.
Every model is trained on the training half with fixed seeds and tested on the other half; latency is
the median of repeated timed predictions on one thread, memory the size of the serialised model.  All but
the latencies are the same on every run.
"""

import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

BATCHES = (1, 16, 128)
_REPEATS = (7, 41)  # fewest and most timed predictions
_BUDGET = 0.004  # seconds after which no further prediction is timed


@dataclass(frozen=True)
class Task:
    """Arrays of a classification task; ``image`` is the (channels, height, width) of a row, if any."""

    name: str
    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    image: tuple[int, int, int] | None = None


def tasks() -> list[Task]:
    """Digits (10 classes), their parity, breast cancer, and which of two photos a patch is from."""
    from sklearn.datasets import load_breast_cancer, load_digits

    digits, cancer = load_digits(), load_breast_cancer()
    image = (1, 8, 8)
    pixels = digits.data / 16.0
    return [
        _split("digits", pixels, digits.target, image),
        _split("parity", pixels, digits.target % 2, image),
        _split("cancer", cancer.data, cancer.target, None),
        _patches(),
    ]


def _split(name: str, x: np.ndarray, y: np.ndarray, image: tuple[int, int, int] | None) -> Task:
    from sklearn.model_selection import train_test_split

    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=0.5, stratify=y, random_state=0
    )
    mean, scale = x_train.mean(axis=0), x_train.std()
    if image is None:
        scale = x_train.std(axis=0)
    halves = [((x - mean) / scale).astype(np.float32) for x in (x_train, x_test)]
    return Task(name, (halves[0], y_train), (halves[1], y_test), image)


def _patches(size: int = 6, n_train: int = 600, n_test: int = 1000) -> Task:
    """Patches of the two sample photos; training ones lie in the left half, test ones in the right."""
    from sklearn.datasets import load_sample_images

    rng = np.random.default_rng(0)
    photos = [photo / 255.0 for photo in load_sample_images().images]
    parts = []
    for n, (low, high) in ((n_train, (0.0, 0.5)), (n_test, (0.5, 1.0))):
        rows, labels = [], []
        for label, photo in enumerate(photos):
            height, width, _ = photo.shape
            tops = rng.integers(0, height - size, n)
            lefts = rng.integers(int(low * width), int(high * width) - size, n)
            cut = [photo[t : t + size, s : s + size] for t, s in zip(tops, lefts, strict=True)]
            rows.append(np.stack(cut).transpose(0, 3, 1, 2).reshape(n, -1))
            labels.append(np.full(n, label))
        order = rng.permutation(2 * n)
        parts.append((np.concatenate(rows)[order], np.concatenate(labels)[order]))
    (x_train, y_train), (x_test, y_test) = parts
    mean, scale = x_train.mean(), x_train.std()
    train, test = (((x - mean) / scale).astype(np.float32) for x in (x_train, x_test))
    return Task("patches", (train, y_train), (test, y_test), (3, size, size))


def candidates(task: Task) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names of models and functions that train them, over grids of sizes."""
    yield from _linear(task)
    yield from _trees(task)
    yield from _kernels(task)
    yield from _networks(task)


def _fit(task: Task, model: Any, n: int | None = None) -> Callable[[], Any]:
    x, y = task.train
    return lambda: model.fit(x[:n], y[:n])


def _linear(task: Task) -> Iterator[tuple[str, Callable[[], Any]]]:
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.feature_selection import SelectKBest
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import NearestCentroid
    from sklearn.pipeline import make_pipeline

    inputs: dict[str, Callable[[], list[Any]]] = {"all": list}
    for d in (2, 4, 8, 16):
        inputs[f"pca{d}"] = lambda d=d: [PCA(d, random_state=0)]
        inputs[f"best{d}"] = lambda d=d: [SelectKBest(k=d)]
    heads: dict[str, Callable[[], Any]] = {
        "lda": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1),
        "bayes": lambda: GaussianNB(var_smoothing=1e-2),
        "centroid": NearestCentroid,
    }
    for c in (0.01, 0.1, 1.0, 10.0):
        heads[f"logistic-c{c:g}"] = lambda c=c: LogisticRegression(C=c, max_iter=200)
    for a in (1.0, 100.0):
        heads[f"ridge-a{a:g}"] = lambda a=a: RidgeClassifier(alpha=a)
    for (source, before), (head, make) in product(inputs.items(), heads.items()):
        steps = [*before(), make()]
        yield f"{head}-{source}", _fit(task, make_pipeline(*steps) if before() else steps[0])


def _trees(task: Task) -> Iterator[tuple[str, Callable[[], Any]]]:
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.tree import DecisionTreeClassifier

    for depth, leaf in product((1, 2, 3, 4, 5, 6, 8, 12), (1, 4, 12)):
        model = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf, random_state=0)
        yield f"tree-d{depth}-l{leaf}", _fit(task, model)
    forests = {"forest": RandomForestClassifier, "extra": ExtraTreesClassifier}
    for (name, kind), trees, depth in product(forests.items(), (2, 4, 8, 16, 32), (3, 6, 12)):
        model = kind(trees, max_depth=depth, random_state=0)
        yield f"{name}-n{trees}-d{depth}", _fit(task, model)
    for steps, leaves in product((4, 16), (4, 12)):
        model = HistGradientBoostingClassifier(
            max_iter=steps, max_leaf_nodes=leaves, early_stopping=False, random_state=0
        )
        yield f"boosting-n{steps}-l{leaves}", _fit(task, model)


def _kernels(task: Task) -> Iterator[tuple[str, Callable[[], Any]]]:
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import RidgeClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    for k, n in product((1, 3), (25, 50, 100, 200, 400)):
        yield f"neighbours-k{k}-n{n}", _fit(task, KNeighborsClassifier(k, algorithm="brute"), n)
        model = make_pipeline(PCA(8, random_state=0), KNeighborsClassifier(k, algorithm="brute"))
        yield f"neighbours-k{k}-n{n}-pca8", _fit(task, model, n)
    for c, n in product((0.3, 3.0), (50, 100, 200, 400)):
        yield f"svm-c{c:g}-n{n}", _fit(task, SVC(C=c), n)
    width = task.train[0].shape[1]
    for d, g in product((8, 16, 32, 64, 128, 256), (0.3, 1.0)):
        features = RBFSampler(gamma=g / width, n_components=d, random_state=0)
        yield f"fourier-d{d}-g{g:g}", _fit(task, make_pipeline(features, RidgeClassifier()))


def _networks(task: Task) -> Iterator[tuple[str, Callable[[], Any]]]:
    for width, depth in product((2, 4, 8, 16, 32, 64, 128), (1, 2, 3)):
        yield f"mlp-w{width}-h{depth}", lambda w=width, h=depth: _train(task, [w] * h, None)
    if task.image:
        for channels, layers, stride in product((2, 4, 8, 16), (1, 2), (1, 2)):
            name = f"cnn-c{channels}-l{layers}-s{stride}"
            yield name, lambda c=channels, n=layers, s=stride: _train(task, [c] * n, s)


class Network:
    """A torch network with scikit-learn's ``predict``: rows in, labels out."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Labels of the rows ``x``, float32 (n, inputs)."""
        import torch

        with torch.inference_mode():
            return self.module(torch.from_numpy(x)).argmax(dim=1).numpy()


def _train(task: Task, widths: list[int], stride: int | None, epochs: int = 12) -> Network:
    """A fully connected network, or (with a stride) a convolutional one, by Adam."""
    import torch
    from torch import nn

    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x, y = torch.from_numpy(task.train[0]), torch.from_numpy(task.train[1]).long()
        module = _module(task, widths, stride, int(y.max()) + 1)
    optimizer = torch.optim.Adam(module.parameters(), lr=5e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(x), generator=generator).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(x[rows]), y[rows]).backward()
            optimizer.step()
    for parameter in module.parameters():
        parameter.grad = None
    return Network(module.eval())


def _module(task: Task, widths: list[int], stride: int | None, classes: int) -> Any:
    from torch import nn

    layers: list[Any] = []
    if stride is None:
        size = task.train[0].shape[1]
        for width in widths:
            layers += [nn.Linear(size, width), nn.ReLU()]
            size = width
        return nn.Sequential(*layers, nn.Linear(size, classes))
    channels, height, width_px = task.image or (1, 1, 1)
    layers.append(nn.Unflatten(1, (channels, height, width_px)))
    for index, width in enumerate(widths):
        step = stride if index == 0 else 1
        layers += [nn.Conv2d(channels, width, 3, stride=step, padding=1), nn.ReLU()]
        channels = width
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, classes)
    )


def measure(model: Any, x: np.ndarray) -> tuple[float, float]:
    """Median time of ``model.predict(x)`` in seconds and the relative spread of single times.

    The spread is the median absolute deviation, scaled to a normal standard deviation.
    """
    model.predict(x)
    times: list[float] = []
    while len(times) < _REPEATS[0] or (len(times) < _REPEATS[1] and sum(times) < _BUDGET):
        start = time.perf_counter()
        model.predict(x)
        times.append(time.perf_counter() - start)
    middle = float(np.median(times))
    return middle, float(1.4826 * np.median(np.abs(np.array(times) - middle)) / middle)


def rows(task: Task) -> Iterator[dict[str, Any]]:
    """One row per model and batch size of a task."""
    x, y = task.test
    for name, train in candidates(task):
        model = train()
        facts = {
            "task": task.name,
            "model": name,
            "accuracy": 100.0 * float((model.predict(x) == y).mean()),
            "memory_kb": len(pickle.dumps(model)) / 1000.0,
        }
        for batch in BATCHES:
            seconds, spread = measure(model, np.ascontiguousarray(x[:batch]))
            yield facts | {
                "batch": batch,
                "latency_ms": 1000.0 * seconds / batch,
                "latency_cv": spread,
            }


def generate(folder: Path) -> None:
    """Train and measure all models; write ``archive.parquet`` into ``folder`` (about 80 s, one core)."""
    import torch
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unconverged fits are models of the archive, too
            table = pd.DataFrame([row for task in tasks() for row in rows(task)])
    finally:
        torch.set_num_threads(threads)
    table.to_parquet(Path(folder) / "archive.parquet", index=False)
