"""Execution providers from plugin libraries: the option that selects a format, and the format that they compute in.

A provider that is not in the table is used as any other: the model is handed over as it is, or converted.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tensortriage.engines.options import Options
from tensortriage.engines.process.given_files import FILE
from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import Precision

FALLBACK = ("allow", "refuse")
"""Whether nodes that a provider does not take may run on the CPU."""


@frozen_dataclass
class KnownProvider:
    """A provider whose formats are reached by its own options, not by converting the model.

    Attributes:
        precisions: Formats it computes in, the default first.
        options: Defaults of its options.
        fixed_shapes: Whether it takes only models without open dimensions.
    """

    precisions: tuple[Precision, ...]
    options: Mapping[str, str]
    fixed_shapes: bool


QNN = KnownProvider(
    # Seen with 2.7.0: the HTP computes floating point in fp16 whether enable_htp_fp16_precision is 0 or 1, and without
    # a chip's number every float node ends on the CPU. 60 and 73 are Snapdragon X Elite (QNN's table of supported
    # chips). Open dimensions leave the whole model on the CPU, too.
    precisions=(Precision.FP16, Precision.INT8),
    options=MappingProxyType({"enable_htp_fp16_precision": "1", "soc_model": "60", "htp_arch": "73"}),
    fixed_shapes=True,
)
KNOWN: Mapping[str, KnownProvider] = MappingProxyType({"qnn": QNN, "qnnexecutionprovider": QNN})


def known_provider(given: Options) -> KnownProvider | None:
    """Return the properties of the plugin that options name; None for an unknown one and for none at all."""
    words = (given.text("ep"), given.text("ep_name"))
    return next((KNOWN[word.lower()] for word in words if word.lower() in KNOWN), None)


def plugin_precision(given: Options) -> Precision | None:
    """Return the format that a known plugin computes in with these options; None where no known plugin is named.

    Raises:
        UsageError: For a format that it does not compute in (``engine-option-value``).
    """
    known = known_provider(given)
    return None if known is None else given.precision("precision", known.precisions, known.precisions[0])


def plugin_words(given: Options) -> Mapping[str, object] | None:
    """Return the worker's settings for the plugin that options name; None without one.

    Raises:
        UsageError: For options of a plugin without one (``engine-option-value``).
    """
    own = given.family("ep_option")
    if "ep" not in given:
        for word in ("ep_name", "fallback", *(f"ep_option.{key}" for key in own)):
            if word in given:
                raise UsageError(f"option {word} needs the option ep", slug="engine-option-value", cure="add ep=qnn")
        return None
    if "providers" in given:
        raise UsageError(
            "options ep and providers exclude each other", slug="engine-option-value", cure="leave providers out"
        )
    known = known_provider(given)
    defaults = known.options if known is not None else {}
    return {"name": given.text("ep"), "registered_as": given.text("ep_name"), "options": {**defaults, **own}}


def in_a_worker(given: Options) -> bool:
    """Return whether options mean a process of its own; checks those that belong to a plugin.

    Raises:
        UsageError: As `plugin_words`.
    """
    return plugin_words(given) is not None or "worker" in given or FILE in given
