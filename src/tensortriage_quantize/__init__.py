"""Making 8-bit files: ``convert --int8`` and the candidates of ``debug precision --int8``.

It is written as a package of somebody else's would be, with `tensortriage.api`, `tensortriage.sdk` and
`tensortriage.precision.sdk`.
"""
