"""A self-contained case: its data, the folder a vendor gets, and how that asks PyTorch as well."""
