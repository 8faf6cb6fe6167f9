import numpy as np
import pytest

from encore.papers.portfolio import zoo


@pytest.fixture(scope="module")
def tasks():
    return {task.name: task for task in zoo.tasks()}


def test_tasks_have_disjoint_halves_and_enough_models(tasks):
    assert set(tasks) == {"digits", "parity", "cancer", "patches"}
    for task in tasks.values():
        train, test = ({row.tobytes() for row in x} for x in (task.train[0], task.test[0]))
        assert not train & test
        names = [name for name, _ in zoo.candidates(task)]
        assert len(names) == len(set(names)) >= 200


def test_models_learn_and_are_the_same_on_every_run(tasks):
    task = tasks["digits"]
    models = dict(zoo.candidates(task))
    for name in (
        "logistic-c0.1-all",
        "forest-n16-d12",
        "svm-c3-n400",
        "mlp-w32-h1",
        "cnn-c8-l1-s1",
    ):
        x, y = task.test
        first, second = (models[name]().predict(x) for _ in range(2))
        assert np.array_equal(first, second), name
        assert (first == y).mean() > 0.75, name


def test_measure_times_each_prediction():
    class Slow:
        calls = 0

        def predict(self, x):
            import time

            self.calls += 1
            time.sleep(0.002)

    model = Slow()
    seconds, spread = zoo.measure(model, np.zeros((1, 1)))
    assert 0.002 <= seconds < 0.05
    assert spread >= 0
    assert model.calls == 8  # one to warm up, then the fewest


def test_rows_of_a_few_models(tasks, monkeypatch):
    task = tasks["cancer"]
    monkeypatch.setattr(zoo, "candidates", lambda t: list(zoo._trees(t))[:2])
    rows = list(zoo.rows(task))
    assert len(rows) == 2 * len(zoo.BATCHES)
    assert {row["batch"] for row in rows} == set(zoo.BATCHES)
    assert all(row["latency_ms"] > 0 and row["memory_kb"] > 0 for row in rows)
    assert all(80 < row["accuracy"] <= 100 for row in rows)
