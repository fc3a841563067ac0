"""Engine specs: how users name an engine and its options, ``NAME[:key=value,...]``."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence

from tensortriage.engines.cpu_features import where_it_runs
from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass


class Hardware(enum.Enum):
    """Classes of hardware by their numerical freedoms; the value is the word ``hardware`` of an engine's spec.

    ``LIGHT`` are CPUs under engines that write kernels of their own, made for phones above all: no freedom of such a
    kernel is usual, and none is one that only GPUs or NPUs take. Of ``ANY`` nothing is known.
    """

    CPU = "cpu"
    LIGHT = "light"
    GPU = "gpu"
    NPU = "npu"
    ANY = "any"

    @property
    def has_habits(self) -> bool:
        """Whether the freedoms of all engines of the class are known."""
        return self not in (Hardware.LIGHT, Hardware.ANY)

    @property
    def hides_fusions(self) -> bool:
        """Whether its compilers fuse beyond the plans that they report, so that functions are examined inside."""
        return self is Hardware.NPU


HARDWARE = tuple(hardware.value for hardware in Hardware)

FILE_ENGINES = frozenset({"script", "torch"})
"""Engines whose spec begins with a file of the user's, and a name in it."""


def network_text(text: str) -> str:
    """Return the spec of a network that was written as ``FILE.py:FUNCTION``, or as the engine that it is."""
    return text if text.startswith("torch:") else f"torch:{text}"


@frozen_dataclass
class EngineSpec:
    """An engine's name and its options as written.

    Attributes:
        name: Registered name, e.g. ``onnxruntime``.
        options: Option words to values, both as strings, in the order written. For ``script:FILE.py:NAME`` and
            ``torch:FILE.py:NAME`` the file and the name are the options ``file`` and ``attribute``.
        hardware: The class of hardware that it computes on, when it is given: one of `HARDWARE`. It is written as an
            option of any engine, ``hardware=npu``, and is not passed to the engine.
    """

    name: str
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hardware: str = ""

    @classmethod
    def parse(cls, text: str) -> "EngineSpec":
        """Read ``NAME``, ``NAME:key=value,key=value`` or ``script:FILE.py[:ATTRIBUTE][,key=value...]``.

        Raises:
            UsageError: When the text has another form.
        """
        name, _, rest = text.strip().partition(":")
        if not name:
            raise _malformed(text)
        options: dict[str, str] = {}
        words = rest.split(",") if rest else []
        if name in FILE_ENGINES:
            if not words or not words[0] or "=" in words[0]:
                raise _malformed(text)
            file, colon, attribute = words.pop(0).rpartition(":")
            if not colon or attribute.endswith((".py", ".pt2")):
                file, attribute = (f"{file}:{attribute}" if colon else attribute), ""
            options["file"] = file
            if attribute:
                options["attribute"] = attribute
        for word in words:
            key, equals, value = word.partition("=")
            if not key.strip() or not equals:
                raise _malformed(text)
            options[key.strip()] = value.strip()
        hardware = options.pop("hardware", "").lower()
        if hardware and hardware not in HARDWARE:
            raise UsageError(
                f"hardware={hardware} is no class of hardware",
                slug="engine-option-value",
                cure=f"write hardware= with one of {', '.join(HARDWARE)}",
            )
        return cls(name, options, hardware)

    @classmethod
    def of(cls, given: "EngineSpec | str") -> "EngineSpec":
        """Return a spec, which may be given as text.

        Raises:
            TypeError: For anything else.
            UsageError: As `parse`.
        """
        if isinstance(given, (str, cls)):
            return cls.parse(given) if isinstance(given, str) else given
        raise TypeError("name an engine, e.g. 'onnxruntime' or 'openvino:precision=fp16'")

    def with_options(self, options: Mapping[str, str]) -> "EngineSpec":
        """Return the engine on the same hardware with these options and no others."""
        return dataclasses.replace(self, options=dict(options))

    def __str__(self) -> str:
        options = {**self.options, **({"hardware": self.hardware} if self.hardware else {})}
        head = self.name
        if self.name in FILE_ENGINES:
            head += ":" + options.pop("file", "")
            if "attribute" in options:
                head += ":" + options.pop("attribute")
            return ",".join([head, *(f"{k}={v}" for k, v in options.items())])
        return head + (":" + ",".join(f"{k}={v}" for k, v in options.items()) if options else "")


PLAIN = EngineSpec("onnxruntime", {"optimization": "none"})
"""ONNX Runtime with every op as written and none fused: the reference unless another is named."""


def spec_text(given: EngineSpec | str) -> str:
    """Return the text of a spec; see `EngineSpec.of`. Text may be empty, for none."""
    return given if isinstance(given, str) else str(EngineSpec.of(given))


def spec_list(given: "Sequence[EngineSpec | str] | EngineSpec | str") -> tuple[EngineSpec, ...]:
    """Return several specs, one of which may be given alone; see `EngineSpec.of`."""
    return tuple(map(EngineSpec.of, given if isinstance(given, (list, tuple)) else [given]))


def _malformed(text: str) -> UsageError:
    return UsageError(
        f"'{text}' is not an engine spec",
        slug="engine-spec-malformed",
        cure="write NAME[:key=value,...], e.g. onnxruntime:optimization=none, "
        f"{where_it_runs('openvino:precision=bf16')} or script:my_engine.py:MyEngine",
    )
