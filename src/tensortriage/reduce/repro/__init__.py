"""A self-contained case: its data, the folder for a vendor, and its question to PyTorch as well."""
