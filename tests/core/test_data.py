"""The registry: sources in order, checksums, and data sets that cannot be had."""

import hashlib
from pathlib import Path

import pytest

from encore.core import data
from encore.core.config import ConfigError
from encore.core.data import Conversion, DataError, Dataset, Registry, fetch

CONTENT = b"1,2\n"
SUM = hashlib.sha256(CONTENT).hexdigest()


def write_four(folder):
    """A generator of the test."""
    (folder / "a.csv").write_bytes(CONTENT)


def double(raw, target):
    """A converter of the test."""
    target.write_bytes((raw / "half.csv").read_bytes() * 2)


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """Put one data set ``toy`` with the given sources into a registry; run in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def make(*sources, sha256=SUM, **fields):
        dataset = Dataset(
            title="t", licence="l", citation="c", homepage="https://example.org/toy",
            files={"a.csv": {"sha256": sha256}}, sources=list(sources), **fields,
        )  # fmt: skip
        monkeypatch.setattr(Registry, "load", lambda: Registry(datasets={"toy": dataset}))
        return Registry.load()

    return make


@pytest.fixture
def mirror(tmp_path):
    """A mirror folder that holds the data set."""
    (tmp_path / "mirror/toy").mkdir(parents=True)
    (tmp_path / "mirror/toy/a.csv").write_bytes(CONTENT)
    return str(tmp_path / "mirror")


def test_a_mirror_gives_the_file(registry, mirror):
    registry({"mirror": "toy"})
    assert fetch("toy", ["nowhere", mirror], download=False) == "mirror"
    assert Path("data/toy/a.csv").read_bytes() == CONTENT


def test_sources_are_tried_in_order(registry, mirror):
    registry({"mirror": "toy"}, {"generate": "test_data:write_four"})
    assert fetch("toy", [mirror], download=False) == "mirror"


def test_a_generator_writes_the_folder(registry, monkeypatch):
    registry({"mirror": "toy"}, {"generate": "x:y"})
    monkeypatch.setattr(data, "resolve", lambda name: write_four)
    assert fetch("toy", [], download=False) == "generate"
    assert Path("data/toy/a.csv").read_bytes() == CONTENT


def test_a_package_ships_the_file(registry):
    peer = Path(pytest.__file__).parent / "py.typed"
    registry({"package": {"a.csv": "pytest/py.typed"}}, sha256=data.sha256(peer))
    assert fetch("toy", [], download=False) == "package"


def test_a_wrong_checksum_is_refused_with_both_sums_and_leaves_nothing(registry, mirror):
    registry({"mirror": "toy"}, sha256="0" * 64)
    with pytest.raises(DataError, match=f"toy/a.csv .*sha256 is {SUM}, expected {'0' * 64}"):
        fetch("toy", [mirror], download=False)
    assert list(Path("data/toy").iterdir()) == []


def test_a_data_set_that_nothing_gives_says_what_to_fetch_from_where(registry):
    found = registry({"mirror": "toy"}, {"url": {"a.csv": "https://example.org/toy/a.csv"}})
    reason = found.missing("toy", ["nowhere"], False)
    assert "encore data fetch toy" in reason
    assert "https://example.org/toy" in reason
    assert "\n" not in reason
    with pytest.raises(DataError, match="encore data fetch toy"):
        fetch("toy", ["nowhere"], download=False)


def test_files_that_are_here_are_not_missing(registry):
    found = registry({"mirror": "toy"})
    assert found.missing("toy", [], False)
    write_four_in = Path("data/toy")
    write_four_in.mkdir(parents=True)
    write_four(write_four_in)
    assert found.missing("toy", [], False) == ""


@pytest.fixture
def web(monkeypatch, tmp_path):
    """pooch, served from a local web server on the loopback address."""
    import functools
    import http.server
    import threading

    (tmp_path / "web").mkdir()
    (tmp_path / "web/half.csv").write_bytes(CONTENT)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "web")
    handler.log_message = lambda *_: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_a_public_address_is_downloaded_and_checked(registry, web):
    registry({"url": {"a.csv": f"{web}/half.csv"}})
    assert fetch("toy", [], download=True) == "url"
    assert Path("data/toy/a.csv").read_bytes() == CONTENT


def test_a_download_with_another_checksum_is_refused_with_both_sums(registry, web):
    registry({"url": {"a.csv": f"{web}/half.csv"}}, sha256="0" * 64)
    with pytest.raises(DataError, match=f"{SUM}.*{'0' * 64}|{'0' * 64}.*{SUM}"):
        fetch("toy", [], download=True)
    assert list(Path("data/toy").iterdir()) == []


def test_raw_files_are_checked_then_converted(registry, web, monkeypatch):
    raw = {"half.csv": {"url": f"{web}/half.csv", "sha256": SUM}}
    registry({"url": {"a.csv": Conversion(function="x:y", raw=raw)}}, sha256="0" * 64)
    monkeypatch.setattr(data, "resolve", lambda name: double)
    fetch("toy", [], download=True)
    assert Path("data/toy/a.csv").read_bytes() == CONTENT * 2


def test_an_address_that_cannot_be_reached_is_one_line(registry):
    registry({"url": {"a.csv": "http://127.0.0.1:9/a.csv"}})
    with pytest.raises(DataError, match="cannot be reached"):
        fetch("toy", [], download=True)


def test_an_unknown_data_set_names_the_known_ones(registry):
    registry({"mirror": "toy"})
    with pytest.raises(ConfigError, match="unknown data set 'tyo'; known: toy"):
        fetch("tyo", [], download=False)


def test_the_registry_itself_is_valid():
    for name, dataset in Registry.load().datasets.items():
        assert dataset.licence, name
        for source in dataset.sources:
            if source.kind in ("package", "generate"):
                assert Registry.load().missing(name, [], False) == ""
