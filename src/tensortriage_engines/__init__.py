"""Engines that are optional: written as a plug-in from outside would be, each in a folder with its worker half.

They import nothing of TensorTriage but `tensortriage.engines.sdk`, and their worker halves only the worker's packages.
"""
