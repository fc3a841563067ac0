"""Making 8-bit files: ``convert --int8`` and the candidates of ``debug precision --int8``.

It is written like a third-party package, with `tensortriage.api`, `tensortriage.sdk` and
`tensortriage.precision.sdk`.
"""
