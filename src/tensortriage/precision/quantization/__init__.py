"""8-bit candidates: calibration, Q/DQ pairs, and the nodes that do not stand 8 bits."""
