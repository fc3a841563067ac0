"""One module per format of a report."""
