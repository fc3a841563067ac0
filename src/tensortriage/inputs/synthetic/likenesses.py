"""Made-up pictures and sounds: strokes like letters on a shaded ground, a voice that rises and falls.

Trained networks tell noise from what they know: on noise a detector of text or voice says that there is none, so surely
that its outputs are rounding alone. What looks or sounds somewhat like the real thing makes them speak.
"""

import numpy as np

_SIGNAL = 128
"""A last axis of so many numbers or more is time."""


def likeness(generator: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return a picture or a sound of a shape, between -1 and 1; None where it is neither's.

    Args:
        generator: Source of random numbers.
        shape: ``[batch, channels, height, width]``, ``[batch, height, width, channels]``, or with time as last axis.
    """
    if not shape or 0 in shape:
        return None
    if len(shape) == 4 and shape[1] in (1, 3, 4):
        return np.broadcast_to(_picture(generator, shape[2], shape[3]), shape)
    if len(shape) == 4 and shape[3] in (1, 3, 4):
        return np.broadcast_to(_picture(generator, shape[1], shape[2])[..., np.newaxis], shape)
    if len(shape) < 4 and shape[-1] >= _SIGNAL:
        return np.broadcast_to(_sound(generator, shape[-1]), shape)
    return None


def _picture(generator: np.random.RandomState, height: int, width: int) -> np.ndarray:
    """Return rows of boxes with strokes in them, dark on a light ground."""
    ground = 1.0 - 0.2 * np.add.outer(np.linspace(0, 1, height), np.linspace(0, 1, width))
    size = max(min(height, width) // 12, 4)
    thick, wide = max(size // 6, 1), 2 * size // 3
    for top in range(size, height - size, 2 * size):
        for left in range(size, width - size, size):
            for _ in range(3 * (generator.random_sample() < 0.85)):  # else a gap between words
                along, across = generator.randint(0, size - thick), generator.randint(0, wide)
                if generator.random_sample() < 0.5:
                    ground[top + along : top + along + thick, left : left + wide] = -0.8
                else:
                    ground[top : top + size, left + across : left + across + thick] = -0.8
    return ground


def _sound(generator: np.random.RandomState, count: int) -> np.ndarray:
    """Return harmonics of a tone that wavers, louder and softer four times a second at 16 kHz."""
    time = np.arange(count) / 16000.0
    phase = 2 * np.pi * np.cumsum(140 + 25 * np.sin(2 * np.pi * 1.3 * time)) / 16000.0
    voice = sum(np.sin(order * phase + generator.uniform(0, 6)) / order for order in range(1, 16))
    loud = 0.6 - 0.4 * np.cos(2 * np.pi * 4 * time)
    return 0.3 * np.asarray(voice) * loud + 0.003 * generator.standard_normal(count)
