"""``triage check feed``: which transform turns one file of inputs into another?"""
