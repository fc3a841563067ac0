"""Comparing tensors: metrics measured once, tensors aligned by name, and one place that decides "within"."""

from tensortriage.callable_package import callable_package

callable_package(__name__)
