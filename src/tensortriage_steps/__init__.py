"""Models run step by step, ``triage steps``, and engines compared with themselves, ``triage check consistency``.

It is written like a third-party package, with `tensortriage.api`, `tensortriage.sdk` and
`tensortriage.envelope.sdk`.
"""
