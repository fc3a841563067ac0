"""8-bit files: ``convert --int8``, the candidates of ``debug precision --int8``, and ``inspect quantizers``.

It is written like a third-party package, with `tensortriage.api`, `tensortriage.sdk` and the like.
"""
