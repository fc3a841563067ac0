"""The smallest piece of a model that still fails: what a candidate is, and the ways of asking whether it fails."""

from tensortriage.callable_package import callable_package

callable_package(__name__)
