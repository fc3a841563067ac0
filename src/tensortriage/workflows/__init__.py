"""The library's entry points: each command's work as one function that returns data."""
