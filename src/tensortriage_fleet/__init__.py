"""Many processes and machines: ``triage batch``, and clusters that ``--cluster`` names.

It is written as a package of somebody else's would be, with `tensortriage.api` and `tensortriage.sdk`.
"""
