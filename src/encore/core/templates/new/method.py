"""The method: FILL IN its name, with the paper's equations beside the lines that compute them."""

import numpy as np


def check_samples(samples: np.ndarray, labels: np.ndarray) -> None:
    """Raise ``ValueError`` unless samples are (n, d), finite, with one label each."""
    if samples.ndim != 2:
        raise ValueError(f"samples must be (n, d), got shape {samples.shape}")
    if labels.shape != samples.shape[:1]:
        raise ValueError(f"labels must be ({len(samples)},), got shape {labels.shape}")
    if not np.isfinite(samples).all():
        row = int(np.argwhere(~np.isfinite(samples))[0, 0])
        raise ValueError(f"samples row {row} is not finite")


class Centroid:
    """Nearest class centroid in Euclidean distance (our choice, an example).

    Attributes:
        classes: (k,) sorted labels seen by ``fit``.
        centroids: (k, d) float64 mean of each class.
    """

    def fit(self, samples: np.ndarray, labels: np.ndarray) -> "Centroid":
        """Compute class means from samples (n, d) and labels (n,); ``ValueError`` on bad shapes or NaN."""
        check_samples(samples, labels)
        self.classes, index = np.unique(labels, return_inverse=True)
        sums = np.zeros((len(self.classes), samples.shape[1]))
        np.add.at(sums, index, samples)
        self.centroids = sums / np.bincount(index)[:, None]
        return self

    def predict(self, samples: np.ndarray) -> np.ndarray:
        """Labels (n,) of samples (n, d); ties go to the smallest label."""
        scores = samples @ self.centroids.T - 0.5 * (self.centroids**2).sum(1)
        return self.classes[scores.argmax(1)]
