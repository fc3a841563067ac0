"""What the user's program feeds a network: transforms that turn one feed into another, and how they are found.

`differences` reads them off two feeds that are both at hand; `search` tries them where only outputs are seen; `rungs`
are the two questions of ``triage diagnose`` about them, `shared_memory` one about its outputs, `check` is
``triage check feed``.
"""
