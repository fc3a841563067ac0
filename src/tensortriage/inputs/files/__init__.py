"""Files of tensors: NumPy, Polygraphy's JSON, and our own stores, read and written."""
