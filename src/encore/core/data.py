"""The registry of data sets: where each file comes from, and that it is the file that was meant."""

import hashlib
import shutil
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, model_validator

from encore.core.config import ConfigError, Name, Strict, explain
from encore.core.job import replacing
from encore.core.sources import ROOT

CHUNK = 1 << 20


class DataError(RuntimeError):
    """A data set cannot be had, or a file is not the one that was meant; one line that says what to do."""


class File(Strict):
    """A file of a data set; no checksum for what is measured anew on each machine."""

    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


class Raw(Strict):
    """A file as it lies at its public address; without a checksum the conversion checks its content."""

    url: str
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


class Conversion(Strict):
    """Public raw files that a small reviewed function turns into one file of the data set."""

    function: str = Field(
        pattern=r"^[\w.]+:\w+$", description="(folder of raw files, target) -> None"
    )
    raw: dict[str, Raw]


class Source(Strict):
    """One way to get a data set; exactly one of the four kinds."""

    package: dict[str, str] | None = Field(default=None, description="file: path inside a package")
    generate: str | None = Field(
        default=None, pattern=r"^[\w.]+:\w+$", description="(folder) -> None"
    )
    mirror: str | None = Field(default=None, description="folder inside one of config.mirrors")
    url: dict[str, str | Conversion] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "Source":
        if len(self.model_fields_set) != 1:
            raise ValueError("a source is exactly one of package, generate, mirror, url")
        return self

    @property
    def kind(self) -> str:
        """``package``, ``generate``, ``mirror`` or ``url``."""
        return next(iter(self.model_fields_set))


class Dataset(Strict):
    """A data set of the registry."""

    title: str
    licence: str
    citation: str
    homepage: str = ""
    files: dict[str, File] = Field(min_length=1)
    sources: list[Source] = Field(min_length=1)


class Registry(Strict):
    """``config/datasets.yaml``."""

    datasets: dict[Name, Dataset]

    @staticmethod
    @cache
    def load() -> "Registry":
        """Read and check the registry; ``ConfigError`` names the key."""
        path = ROOT / "config/datasets.yaml"
        try:
            return Registry.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        except ValidationError as error:
            raise ConfigError(f"config/datasets.yaml: {explain(error, Registry)}") from None

    def __getitem__(self, name: str) -> Dataset:
        if name not in self.datasets:
            raise ConfigError(
                f"unknown data set {name!r}; known: {', '.join(sorted(self.datasets))}"
            )
        return self.datasets[name]

    def paths(self, name: str) -> list[str]:
        """Where the files of a data set lie, relative to the repository's root."""
        return [f"data/{name}/{file}" for file in self[name].files]

    def source(self, name: str, mirrors: Iterable[str], download: bool) -> Source | None:
        """The first source that can give the data set, or None."""
        for source in self[name].sources:
            if (
                source.kind in ("package", "generate")
                or (source.kind == "url" and download)
                or (source.mirror and _mirrored(self[name], source.mirror, mirrors))
            ):
                return source
        return None

    def missing(self, name: str, mirrors: Iterable[str], download: bool) -> str:
        """Why a data set is not to be had, in one line with what to do; empty if it is."""
        if all(Path(path).exists() for path in self.paths(name)) or self.source(
            name, mirrors, download
        ):
            return ""
        public = any(source.kind == "url" for source in self[name].sources)
        way = (
            f"run `encore data fetch {name}` (downloads it)"
            if public
            else f"put its files into data/{name}"
        )
        return (
            f"data set {name} is not here: {way}, or list a folder that holds "
            f"{name}/{{{', '.join(self[name].files)}}} in `mirrors` of config/config.yaml; "
            f"its home is {self[name].homepage or 'named in config/datasets.yaml'}"
        )

    def code(self, name: str) -> list[str]:
        """The module that generates a data set, as the input of its rule.

        Its own file only: a data set is measured anew when its generator changes, not when the core does.
        """
        return [
            f"src/{source.generate.split(':')[0].replace('.', '/')}.py"
            for source in self[name].sources
            if source.generate
        ]


def fetch(name: str, mirrors: Iterable[str], *, download: bool, folder: Path | None = None) -> str:
    """Bring a data set into ``data/<name>/`` from its first source that can give it.

    Every file is checked against its sha256 before it gets its name.

    Returns:
        The kind of the source.

    Raises:
        DataError: no source can give it, or a checksum differs (both sums are named).
    """
    registry = Registry.load()
    dataset = registry[name]
    source = registry.source(name, mirrors, download)
    if source is None:
        raise DataError(registry.missing(name, mirrors, download))
    folder = folder or Path("data") / name
    folder.mkdir(parents=True, exist_ok=True)
    if source.generate:
        _generate(dataset, source.generate, folder)
    else:
        for file in dataset.files:
            with replacing(folder / file) as part:
                _get(dataset, file, source, mirrors, part)
                verify(part, dataset.files[file].sha256, f"{name}/{file}", source.url)
    return source.kind


def verify(path: Path, expected: str | None, name: str, url: Any = None) -> None:
    """Compare a file with its checksum; what a conversion wrote is checked through its raw files instead.

    Raises:
        DataError: they differ; both sums are named.
    """
    converted = url is not None and isinstance(url.get(name.split("/")[-1]), Conversion)
    if expected is None or converted:
        return
    found = sha256(path)
    if found != expected:
        raise DataError(f"{name} is not the expected file: sha256 is {found}, expected {expected}")


def sha256(path: Path) -> str:
    """Hex digest of a file's content."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            total.update(block)
    return total.hexdigest()


def resolve(reference: str) -> Callable[..., Any]:
    """The function that ``package.module:name`` names."""
    module, name = reference.split(":")
    return getattr(import_module(module), name)


def _generate(dataset: Dataset, reference: str, folder: Path) -> None:
    resolve(reference)(folder)
    for file, facts in dataset.files.items():
        if not (folder / file).exists():
            raise DataError(f"{reference} did not write {file}")
        verify(folder / file, facts.sha256, file)


def _get(dataset: Dataset, file: str, source: Source, mirrors: Iterable[str], target: Path) -> None:
    if source.mirror:
        shutil.copyfile(_mirrored(dataset, source.mirror, mirrors) / file, target)  # type: ignore[operator]
    elif source.package:
        package, _, inside = source.package[file].partition("/")
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise DataError(f"{file} ships with the package {package!r}, which is not installed")
        shutil.copyfile(Path(spec.submodule_search_locations[0]) / inside, target)
    elif source.url:
        address = source.url[file]
        if isinstance(address, str):
            _download(address, dataset.files[file].sha256, target)
        else:
            _convert(address, target)


def _convert(conversion: Conversion, target: Path) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(dir=target.parent) as raw:
        for name, item in conversion.raw.items():
            _download(item.url, item.sha256, Path(raw) / name)
        resolve(conversion.function)(Path(raw), target)


def _download(address: str, checksum: str | None, target: Path) -> None:
    import pooch

    try:
        pooch.retrieve(
            address,
            known_hash=None if checksum is None else f"sha256:{checksum}",
            fname=target.name,
            path=target.parent,
            progressbar=True,
        )
    except ValueError as error:
        raise DataError(f"{address}: {' '.join(str(error).split())}") from None
    except OSError as error:
        raise DataError(f"{address} cannot be reached: {error}") from None


def _mirrored(dataset: Dataset, folder: str, mirrors: Iterable[str]) -> Path | None:
    for mirror in mirrors:
        path = (ROOT / mirror / folder).resolve()
        if all((path / file).is_file() for file in dataset.files):
            return path
    return None
