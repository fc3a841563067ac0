"""The engine ``float64``: float64 arithmetic in numpy.

Scripts that wrap this engine import `Float64Engine` from here; it is loaded on first use.
"""

from typing import TYPE_CHECKING

from tensortriage.values.first_use import on_first_use

if TYPE_CHECKING:
    from tensortriage.engines.float64.engine import Float64Engine as Float64Engine

__getattr__ = on_first_use(__name__, __file__)
