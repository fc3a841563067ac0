"""Searching the nodes that must stay float in an 8-bit model."""
