"""Which class of hardware an engine computes on, and with that, which freedoms are its own."""

import enum

from tensortriage.engines.spec import EngineSpec


class Hardware(enum.Enum):
    """Classes of hardware by what they are free to choose; the value is the word ``hardware`` of an engine's spec."""

    CPU = "cpu"
    GPU = "gpu"
    NPU = "npu"
    ANY = "any"

    @classmethod
    def of(cls, spec: EngineSpec) -> "Hardware":
        """Return the class of an engine: what its spec says, else what is known of it; `ANY` for scripts and others."""
        if spec.hardware:
            return cls(spec.hardware)
        if spec.name in ("reference", "emulate"):
            return cls.CPU
        if spec.name == "tensorrt":
            return cls.GPU
        if spec.name == "rknn":
            return cls.NPU
        where = " ".join(spec.options.get(key, "") for key in ("providers", "ep", "ep_name", "device")).lower()
        if spec.name in ("onnxruntime", "openvino"):
            if any(word in where for word in ("cuda", "tensorrt", "gpu", "rocm", "dml")):
                return cls.GPU
            return cls.NPU if "npu" in where or "qnn" in where else cls.CPU
        return cls.ANY
