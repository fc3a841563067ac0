"""Many processes and machines: ``triage batch``, and clusters that ``--cluster`` names.

It is written like a third-party package, with `tensortriage.api` and `tensortriage.sdk`.
"""
