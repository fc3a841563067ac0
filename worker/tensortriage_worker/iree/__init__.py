"""IREE: its importer, its compiler and its runtime, as the user has them."""
