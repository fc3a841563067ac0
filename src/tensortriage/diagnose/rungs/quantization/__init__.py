"""Is it quantization, or arithmetic in 8-bit integers?"""
