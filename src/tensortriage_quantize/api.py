"""Quantizing from Python: a request, and the function that answers it with plain data."""

from tensortriage_quantize.calibration.calibrated_model import Calibration, QuantizeOptions
from tensortriage_quantize.quantize import QuantizeRequest, QuantizeResult, quantize

__all__ = ["Calibration", "QuantizeOptions", "QuantizeRequest", "QuantizeResult", "quantize"]
