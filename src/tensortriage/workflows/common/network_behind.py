"""The PyTorch network behind a model, where an engine that the user named is that network."""

from tensortriage.engines.spec import EngineSpec
from tensortriage.engines.torch.engine import TorchEngine

_HOW_IT_IS_COMPUTED = ("dtype", "compile")


def network_behind(reference: EngineSpec | None) -> EngineSpec | None:
    """Return the network that a reference is, as it is: neither compiled nor in another format; None for others.

    Where such a reference and the file disagree, any of exporter, engine and network may be wrong. So it is asked about
    as a network that is named for that question alone (``--torch``).
    """
    if reference is None or reference.name != TorchEngine.name:
        return None
    kept = {word: value for word, value in reference.options.items() if word not in _HOW_IT_IS_COMPUTED}
    return reference.with_options(kept)
