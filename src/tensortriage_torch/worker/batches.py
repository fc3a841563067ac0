"""Contents of ``torch.save`` files: tensors in plain containers, without executing any code of the file."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from tensortriage_torch.worker.network import as_item, torch_module
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item

MAX_EXPANSION = 200
"""A file may expand by this factor ..."""
FREE_EXPANSION_BYTES = 1 << 30
"""... or to this many bytes, whichever is more: the bounds of .npz."""


def read_batch(path: Path, names: Sequence[str]) -> Tuple[Dict[str, Any], List[Item]]:
    """Return the samples of a file: per sample its input names, and the arrays as ``SAMPLE/INPUT``.

    Raises:
        AdapterError: When the file holds anything else.
    """
    torch = torch_module()
    size = path.stat().st_size
    if zipfile.is_zipfile(str(path)):
        with zipfile.ZipFile(str(path)) as archive:
            _check_expansion(size, sum(info.file_size for info in archive.infolist()))
    try:
        found = torch.load(str(path), map_location="cpu", weights_only=True)
    except Exception as error:  # pickles of strangers
        text = " ".join(str(error).split())
        raise _unusable("{}: {}".format(type(error).__name__, text[:300])) from None
    samples = found if isinstance(found, list) and found and not isinstance(found[0], torch.Tensor) else [found]
    told, items = [], []  # type: List[List[str]], List[Item]
    expanded = 0
    for place, sample in enumerate(samples):
        named = _by_name(torch, sample, names)
        told.append(list(named))
        expanded += sum(tensor.numel() * tensor.element_size() for tensor in named.values())
        _check_expansion(size, expanded)  # a view may repeat one stored number without end
        items += [as_item(torch, "{}/{}".format(place, name), tensor) for name, tensor in named.items()]
    return {"samples": told}, items


def _check_expansion(size: int, expanded: int) -> None:
    if expanded > max(FREE_EXPANSION_BYTES, MAX_EXPANSION * size):
        raise _unusable("it would expand from {} to {} bytes".format(size, expanded))


def _by_name(torch: Any, sample: Any, names: Sequence[str]) -> Dict[str, Any]:
    if isinstance(sample, torch.Tensor):
        sample = (sample,)
    if isinstance(sample, (tuple, list)) and len(sample) >= len(names):
        sample = dict(zip(names, sample))  # noqa: B905 - Python 3.9
    if not isinstance(sample, Mapping) or not all(isinstance(value, torch.Tensor) for value in sample.values()):
        raise _unusable("a sample is a {}, not a dict of tensors".format(type(sample).__name__))
    return {str(name): tensor for name, tensor in sample.items()}


def _unusable(why: str) -> AdapterError:
    return AdapterError(AdapterFailure.BUILD, why, "torch-batch", "torch.save a dict of tensors, or a list of such")
