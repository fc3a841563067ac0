"""Engine files, and what engines are told before they build."""
