"""Element types, value specs, tensor stores and serialisation: numpy and ml_dtypes only."""
