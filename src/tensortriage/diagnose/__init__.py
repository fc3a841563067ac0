"""From evidence to a verdict: a ladder of cheap questions that stops at the first decisive answer."""

from tensortriage.callable_package import callable_package

callable_package(__name__)
