"""Baselines with the same interface as the method."""

import numpy as np

from encore.papers.PAPER_SLUG.method import check_samples


class Majority:
    """Always the most frequent label of the training samples."""

    def fit(self, samples: np.ndarray, labels: np.ndarray) -> "Majority":
        """Remember the most frequent of labels (n,); ``ValueError`` on bad shapes or NaN."""
        check_samples(samples, labels)
        classes, counts = np.unique(labels, return_counts=True)
        self.label = classes[counts.argmax()]
        return self

    def predict(self, samples: np.ndarray) -> np.ndarray:
        """That label, (n,), for samples (n, d)."""
        return np.full(len(samples), self.label)
