"""The inputs that a user's program feeds: transforms that turn one feed into another, and how they are found.

`differences` reads them off two feeds that are both at hand; `search` tries them where only outputs are seen; `rungs`
are the two questions of ``triage diagnose`` about them, `changing_input` one about their memory, `shared_memory` and
`returned` two about its outputs; `check` is ``triage check feed``.
"""
