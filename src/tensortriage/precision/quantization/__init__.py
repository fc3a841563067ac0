"""8-bit candidates: calibration, Q/DQ pairs, and the nodes that 8 bits are not enough for."""
