"""``triage polygraphy``: the commands of the core, which take Polygraphy's command lines and answer in its words.

It is written as a package of somebody else's would be, with `tensortriage.api` and `tensortriage.sdk`.
"""
