"""``triage polygraphy``: the commands of the core, which take Polygraphy's command lines and answer in its words.

It is written like a third-party package, with `tensortriage.api` and `tensortriage.sdk`.
"""
