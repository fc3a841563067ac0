"""Many processes and machines: ``triage batch``, clusters that ``--cluster`` names, and assertions for pytest.

It is written like a third-party package, with `tensortriage.api` and `tensortriage.sdk`.
"""
