"""Task metrics by name: ``--metric top1``, ``top5``, ``boxes``, ``cosine``, ``tokens``.

Each is a function of outputs, feed, labels and the reference's outputs, registered under ``tensortriage.metrics``.
Without labels it measures agreement with the reference, which then scores 1 itself.
"""
