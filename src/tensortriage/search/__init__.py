"""Delta debugging of anything: which few of many items are needed for a failure, in as few checks as possible.

Knows nothing of models: items are opaque, and an oracle decides whether a subset of them still fails the same way.
`driver.minimize` is the entry point.
"""
