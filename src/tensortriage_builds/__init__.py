"""Builds: one model built again and again, the differences of good and bad builds, and the choice that causes them."""
