"""Models run step by step, ``triage steps``, and engines held against themselves, ``triage check consistency``.

It is written as a package of somebody else's would be, with `tensortriage.api`, `tensortriage.sdk` and
`tensortriage.envelope.sdk`.
"""
