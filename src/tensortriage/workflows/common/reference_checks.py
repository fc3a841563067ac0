"""What a search rests on: a reference whose outputs are numbers. Anything agrees with NaN, and with nothing."""

from collections.abc import Iterable, Mapping

import numpy as np

from tensortriage.diagnose.measurements.soundness import has_nan
from tensortriage.errors import DataError


def require_numbers(outputs: Iterable[tuple[str, Mapping[str, np.ndarray]]]) -> None:
    """Refuse outputs of the reference that nothing can be judged by.

    Args:
        outputs: Name of the feed and the reference's outputs on it.

    Raises:
        DataError: When one holds NaN (``reference-nan``), or all are without elements (``nothing-compared``).
    """
    elements = 0
    for feed, found in outputs:
        for name, array in found.items():
            elements += array.size
            if has_nan(array):
                raise DataError(
                    f"output '{name}' of the reference holds NaN on {feed}: nothing can be judged by it",
                    slug="reference-nan",
                    cure="look at the numbers that go in: triage inspect data; triage diagnose says where it is born",
                )
    if not elements:
        raise DataError(
            "every output of the reference is empty on every feed, so that agreement would prove nothing",
            slug="nothing-compared",
            cure="give inputs for which the model computes something",
        )
