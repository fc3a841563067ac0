"""TVM, a compiler of tensor programs."""
