"""Packages of an engine's environment: pinned to versions that were seen to work together, release by release.

A release is installed with the packages of its row in the recipe; rows are those that were tried (bench/RESULTS.md).
"""

import dataclasses
import re
from collections.abc import Mapping

Pythons = tuple[tuple[int, int], tuple[int, int]]
"""The oldest and the newest Python that packages take."""
_ANY: Pythons = ((3, 8), (3, 99))
_OURS: Pythons = ((3, 11), (3, 99))
_WORKER = ("numpy==2.4.6", "ml_dtypes==0.6.0")
_EXPORT = ("onnx==1.23.2", "onnxscript==0.7.2")
_ONNX2TF = (
    "onnx==1.20.1", "onnxruntime==1.26.0", "opencv-python==4.13.0.92", "onnxsim==0.6.5", "onnxoptimizer==0.4.2",
    "onnxscript==0.6.2", "sne4onnx==2.0.1", "sng4onnx==2.0.1", "psutil==5.9.5", "protobuf==7.35.1", "h5py==3.14.0",
    "setuptools==81.0.0", "flatbuffers==25.12.19", "tqdm==4.67.1", "numpy==2.2.6", "ml_dtypes==0.5.4",
)  # fmt: skip
"""Requirements of onnx2tf 2.6.9 besides LiteRT 2.1.2 and pytest."""
_RKNN = (
    "numpy==1.26.4", "onnx==1.18.0", "onnxruntime==1.26.0", "protobuf==4.25.4", "psutil==7.2.2", "ruamel.yaml==0.19.1",
    "scipy==1.17.1", "tqdm==4.70.1", "opencv-python-headless==4.11.0.86", "fast-histogram==0.14", "ml_dtypes==0.5.4",
    "setuptools==80.9.0",
)  # fmt: skip
"""The toolkit imports pkg_resources, which no newer setuptools has and no virtual environment of Python 3.12 on."""


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """Companions of a package's releases from one on; ``{version}`` is replaced by theirs.

    Attributes:
        since: The oldest of them.
        beside: Packages installed with the package.
        bare: Packages that are installed without their dependencies.
        pythons: Which Pythons all that takes.
    """

    since: str
    beside: tuple[str, ...] = ("numpy", "ml_dtypes")
    bare: tuple[str, ...] = ()
    pythons: Pythons = _ANY


@dataclasses.dataclass(frozen=True, slots=True)
class Ingredients:
    """Contents of one environment.

    Attributes:
        requirements: Packages to install.
        bare: Further packages, without their dependencies.
        pythons: Which Pythons all that takes.
    """

    requirements: tuple[str, ...]
    bare: tuple[str, ...]
    pythons: Pythons


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """Recipe for environments.

    Attributes:
        engine: The engine that uses them.
        package: The package with the version of the environment; its optional parts follow the name.
        version: The version that is installed by default.
        pinned: Companion packages, each at the version that it was seen to work with.
        releases: Companions of other releases, the newest first; releases older than all are not offered.
        pythons: Which Pythons the pinned packages take.
        options: Options that an engine spec needs besides ``worker``, as written.
        alone: Whether the package is installed without its dependencies: pnnx and rknn-toolkit2 want PyTorch, which
            they do not need for ONNX files.
    """

    engine: str
    package: str
    version: str
    pinned: tuple[str, ...]
    releases: tuple[Release, ...]
    pythons: Pythons = _OURS
    options: str = ""
    alone: bool = False

    @property
    def distribution(self) -> str:
        """The name of the package, without its optional parts."""
        return self.package.partition("[")[0]

    @property
    def oldest(self) -> str:
        """The oldest release that is offered."""
        return self.releases[-1].since

    def of(self, version: str = "") -> Ingredients | None:
        """Return the packages for a version of the package, or the default one; None for one too old."""
        release_version = version or self.version
        release = next((each for each in self.releases if in_order(each.since) <= in_order(release_version)), None)
        if release is None:
            return None
        package = f"{self.package}=={release_version}"
        companions = tuple(each.format(version=release_version) for each in release.beside) if version else self.pinned
        bare = tuple(each.format(version=release_version) for each in release.bare)
        pythons = release.pythons if version else self.pythons
        return Ingredients(companions, (package, *bare), pythons) if self.alone else Ingredients(
            (package, *companions), bare, pythons
        )  # fmt: skip

    def target(self, python: str) -> str:
        """Return the target to write; torch needs its network in front."""
        options = self.options + "," if self.options else ""
        return f"{self.engine}:{options}worker={python}"


def in_order(version: str) -> tuple[int, ...]:
    """Return a sort key for versions: their numbers."""
    return tuple(map(int, re.findall(r"\d+", version)))


RECIPES: Mapping[str, Recipe] = {
    "iree": Recipe(
        "iree",
        "iree-base-compiler[onnx]",
        "3.13.0",
        ("iree-base-runtime==3.13.0", "onnx==1.23.2", *_WORKER),
        (
            Release("3.8", ("iree-base-runtime=={version}", "onnx", "numpy", "ml_dtypes")),
            Release("3.7.1", ("iree-base-runtime==3.7.0", "onnx", "numpy", "ml_dtypes")),  # there is no other
            Release("3.3", ("iree-base-runtime=={version}", "onnx", "numpy", "ml_dtypes")),
        ),
    ),
    "litert": Recipe(
        "litert",
        "ai-edge-litert",
        "2.1.2",
        _ONNX2TF,
        (Release("1.4", _ONNX2TF, bare=("onnx2tf==2.6.9",), pythons=((3, 12), (3, 13))),),
        pythons=((3, 12), (3, 13)),
    ),
    "mnn": Recipe("mnn", "MNN", "3.6.1", _WORKER, (Release("3.0"),)),
    "ncnn": Recipe(
        "ncnn",
        "ncnn",
        "1.0.20261020",
        _WORKER,
        (
            Release("1.0.20261020", bare=("pnnx==20261020",)),
            Release("1.0.20260526", bare=("pnnx==20260526",)),
            Release("1.0.20260114", bare=("pnnx==20260112",)),
            Release("1.0.20250916", bare=("pnnx==20250912",)),
            Release("1.0.20250503", bare=("pnnx==20250430",)),
        ),
    ),
    "nv_tensorrt_rtx": Recipe(
        "onnxruntime",
        "onnxruntime-ep-nv-tensorrt-rtx-cu13",
        "0.5.0",
        ("onnxruntime==1.32.0", *_WORKER),
        (Release("0.1", ("onnxruntime", "numpy", "ml_dtypes")),),
        options="ep=nv_tensorrt_rtx",
    ),
    "onnxruntime": Recipe(
        "onnxruntime",
        "onnxruntime",
        "1.32.0",
        _WORKER,
        (Release("1.19"), Release("1.17", ("numpy<2", "ml_dtypes"))),  # which were compiled for numpy 1
    ),
    "openvino": Recipe("openvino", "openvino", "2026.4.1", _WORKER, (Release("2024"),)),
    "qnn": Recipe(
        "onnxruntime",
        "onnxruntime-qnn",
        "2.7.0",
        ("onnxruntime==1.32.0", *_WORKER),
        (Release("2.3", ("onnxruntime==1.32.0", "numpy", "ml_dtypes")),),
        options="ep=qnn",
    ),
    "rknn": Recipe(
        "rknn",
        "rknn-toolkit2",
        "2.5.0",
        _RKNN,
        (Release("2.3", _RKNN, pythons=((3, 11), (3, 12))),),
        pythons=((3, 11), (3, 12)),
        alone=True,
    ),
    "tvm": Recipe(
        "tvm",
        "apache-tvm",
        "0.27.0.post1",
        ("onnx==1.23.2", *_WORKER),
        (
            Release("0.26", ("onnx", "numpy", "ml_dtypes")),
            Release("0.25", ("apache-tvm-ffi==0.1.12", "onnx", "numpy", "ml_dtypes")),  # later ones lack a symbol
        ),
    ),
    "torch": Recipe(
        "torch",
        "torch",
        "2.13.0",
        (*_EXPORT, *_WORKER),
        (Release("2.6", ("onnx", "onnxscript", "numpy", "ml_dtypes")),),
        options="...",
    ),
}
"""By the word of ``triage engines install``: an engine's name, or that of a provider that an engine loads."""
