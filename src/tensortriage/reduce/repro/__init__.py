"""A case that stands by itself: its data, the folder a vendor gets, and how that asks PyTorch as well."""
