"""INT8 calibration (TensorRT 8.5 to 10): a cache that is read, or a calibrator that is fed with feeds of ours.

A cache holds one scale per tensor, so it is only as good as the data it was made from. Feeding the calibrator anew with
representative feeds is the way to find out whether a wrong INT8 engine is the fault of its calibration.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

import numpy as np

from tensortriage_engines.tensorrt.worker.config import Shapes, lacking
from tensortriage_engines.tensorrt.worker.dtypes import label_of, to_bytes
from tensortriage_engines.tensorrt.worker.memory import Buffers, Cuda
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item
from tensortriage_worker.shards import ShardReader

CALIBRATORS = {
    "entropy2": "IInt8EntropyCalibrator2", "entropy": "IInt8EntropyCalibrator", "minmax": "IInt8MinMaxCalibrator",
}  # fmt: skip
SEPARATOR = "/"
"""Between the number of a feed and the name of its input in a shard of feeds."""


def attach(
    trt: Any, builder: Any, config: Any, network: Any, options: Mapping[str, str], used: Mapping[str, Shapes]
) -> Any:
    """Give a configuration a calibrator, fed by a shard of feeds or answering with a cache; return it.

    Raises:
        AdapterError: When this release has no calibrators.
    """
    base = getattr(trt, CALIBRATORS[options.get("calibrator", "entropy2")], None)
    if base is None or not hasattr(config, "int8_calibrator"):
        raise lacking(trt, "calibration: quantize the model (Q/DQ) instead")
    cache = b""
    if "calibration_cache" in options:
        with open(options["calibration_cache"], "rb") as file:
            cache = file.read()
    feeds = _feeds(options["calibration_feeds"]) if "calibration_feeds" in options else []
    types = {network.get_input(i).name: network.get_input(i).dtype for i in range(network.num_inputs)}
    labels = {name: label_of(dtype) for name, dtype in types.items()}
    calibrator = _make(trt, base, _of_one_shape(feeds), cache, labels, device=int(options.get("device", "0")))
    if used:
        profile = builder.create_optimization_profile()
        for name, shapes in used.items():
            fixed = feeds[0][name].array.shape if feeds and name in feeds[0] else shapes[1]
            profile.set_shape(name, fixed, fixed, fixed)
        config.set_calibration_profile(profile)
    config.int8_calibrator = calibrator
    return calibrator


def _feeds(path: str) -> List[Dict[str, Item]]:
    """Return the feeds of a shard whose tensors are named ``NUMBER/INPUT``."""
    reader = ShardReader(path)
    feeds: Dict[int, Dict[str, Item]] = {}
    for key, label in reader.labels.items():
        number, _, name = key.partition(SEPARATOR)
        feeds.setdefault(int(number), {})[name] = Item(name, reader.tensor(key), label)
    return [feeds[number] for number in sorted(feeds)]


def _of_one_shape(feeds: List[Dict[str, Item]]) -> List[Dict[str, Item]]:
    """Return feeds as they are: a calibrator hands over addresses, and TensorRT reads the shapes of its profile there.

    Raises:
        AdapterError: When one has another shape than the first: memory behind its end would be calibrated with.
    """
    for number, feed in enumerate(feeds):
        for name, item in feed.items():
            shape, first = list(item.array.shape), list(feeds[0][name].array.shape)
            if shape != first:
                raise AdapterError(
                    AdapterFailure.USAGE,
                    "calibration takes feeds of one shape, and input '{}' is {} in the first, {} in feed {}".format(
                        name, first, shape, number + 1
                    ),
                    "calibration-shapes",
                    "give feeds of one shape, or scales: calibration_cache=FILE",
                )
    return feeds


def _make(
    trt: Any, base: Any, feeds: List[Dict[str, Item]], cache: bytes, types: Mapping[str, str], device: int = 0
) -> Any:
    buffers = Buffers(Cuda(device)) if feeds else None

    class Calibrator(base):  # type: ignore[misc] # TensorRT has no types here
        """Called for one batch after the other until it has none left; ``written`` is the new cache."""

        def __init__(self) -> None:
            base.__init__(self)
            self.written = b""
            self._waiting = list(feeds)

        def get_batch_size(self) -> int:
            return 1

        def get_batch(self, names: List[str], *_: Any) -> Optional[List[int]]:
            if not self._waiting or buffers is None:
                return None
            feed = self._waiting.pop(0)
            return [self._uploaded(name, feed[name]) for name in names]

        def _uploaded(self, name: str, item: Item) -> int:
            assert buffers is not None
            data = np.ascontiguousarray(to_bytes(item.array, item.label, types[name]))
            address = buffers.get(name, data.nbytes)
            buffers.cuda.upload(address, data)
            return address

        def read_calibration_cache(self, *_: Any) -> Optional[bytes]:
            return cache if cache and not feeds else None

        def write_calibration_cache(self, data: Any, *_: Any) -> None:
            self.written = bytes(data)

    if not feeds and not cache:
        raise AdapterError(AdapterFailure.USAGE, "the calibration cache is empty", "calibration-empty")
    return Calibrator()
