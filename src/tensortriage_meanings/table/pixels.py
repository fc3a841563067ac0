"""Differences of a Resize beyond its attributes: which pixel is the nearest, in whole numbers."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

_Place = Callable[[np.ndarray, int, int], np.ndarray]

_NEAREST: Mapping[str, _Place] = {
    "asymmetric and nearest_mode floor, in whole numbers (pixel floor(i * in / out))": lambda i, size, made: (
        i * size // made
    ),
    "half_pixel and nearest_mode floor, in whole numbers (pixel floor((i + 0.5) * in / out))": lambda i, size, made: (
        (2 * i + 1) * size // (2 * made)
    ),
    "align_corners and nearest_mode round_prefer_ceil, in whole numbers": lambda i, size, made: (
        (2 * i * (size - 1) + made - 1) // (2 * max(made - 1, 1))
    ),
}
"""The pixel that stands for the i-th: computed exactly by frameworks, where a scale in float32 falls short of one."""


def _nearest(site: MeantNode) -> Iterator[Meaning]:
    """Yield a nearest pixel that is found in whole numbers."""
    shape, made = site.shape(), site.made()
    if site.text("mode") != "nearest" or shape is None or made is None or len(shape) != len(made):
        return
    names = [f"v{index}" for index in range(len(site.node.inputs))]
    for words, place in _NEAREST.items():
        steps, value = "", names[0]
        for axis, (size, wanted) in enumerate(zip(shape, made, strict=True)):
            if size != wanted:
                pixels = np.clip(place(np.arange(wanted), size, wanted), 0, size - 1).tolist()
                steps += f"i{axis} = Constant<value_ints={pixels}>() t{axis} = Gather<axis={axis}>({value}, i{axis}) "
                value = f"t{axis}"
        given = f"{site.text('coordinate_transformation_mode')} and {site.text('nearest_mode')}"
        yield Meaning(
            f"coordinate_transformation_mode were {words}, not {given}",
            body=f"({', '.join(names)}) => (y) {{ {steps}y = Identity({value}) }}",
            cure="set both attributes this way, with sizes instead of scales; where a pixel still differs, use Gather",
        )


PIXELS: tuple[MeaningRow, ...] = (MeaningRow(("Resize", "Upsample"), _nearest, since=11),)
