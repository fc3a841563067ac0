"""Feeds that ``torch.save`` wrote, read where PyTorch is: in a worker, tensors and plain containers only.

A file holds one sample or a list of them; a sample is a dict from input name to tensor, or a tensor or tuple in the
order of the model's inputs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tensortriage.engines.sdk import EngineError, IsolatedEngine, Limits, ValueSpec
from tensortriage.sdk import DataError, Feed, Origin, check_feed
from tensortriage_torch.engine import ADAPTER


def torch_feeds(path: Path, specs: Sequence[ValueSpec], limits: Limits | None = None) -> Iterator[Feed]:
    """Yield the samples of a file, each checked against the model.

    Args:
        path: A file of ``torch.save``.
        specs: The model's inputs.
        limits: Bounds on reading it.

    Raises:
        EngineMissing: When this interpreter has no PyTorch.
        DataError: When there is no such file (``feed-file-missing``), it holds anything but tensors in plain containers
            (``torch-batch``), or a sample does not fit the model.
    """
    if not path.is_file():
        raise DataError(f"{path} does not exist", slug="feed-file-missing", cure="check the path")
    isolated = IsolatedEngine(ADAPTER, title="PyTorch", limits=limits or Limits())
    try:
        labels, arrays = isolated.answer("batch", path, {"names": ",".join(spec.name for spec in specs)})
    except EngineError as error:
        raise DataError(
            f"{path} cannot be read: {error.message}", slug="torch-batch", cure="torch.save a dict of tensors"
        ) from error
    for index, names in enumerate(labels["samples"]):
        tensors = {name: arrays[f"{index}/{name}"] for name in names}
        yield check_feed(Feed(f"{path.name}[{index}]", tensors, Origin.REAL), specs)
