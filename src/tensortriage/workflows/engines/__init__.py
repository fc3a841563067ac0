"""Engine files, and the settings of engines before a build."""
