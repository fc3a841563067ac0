"""``triage batch``: many models, feeds, targets and commands as one table of cells, each a process of its own.

It is written as a package of somebody else's would be, with `tensortriage.api` and `tensortriage.sdk`.
"""
