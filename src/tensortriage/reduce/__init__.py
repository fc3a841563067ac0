"""The smallest piece of a model that still fails: its candidates, and the ways to test whether one fails."""

from tensortriage.callable_package import callable_package

callable_package(__name__)
