"""MNN, Alibaba's engine for phones."""
