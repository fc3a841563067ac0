"""The far side of the process border: here an engine runs, needing nothing but numpy and a Python >= 3.8."""
