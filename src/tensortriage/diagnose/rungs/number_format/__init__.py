"""Is it the number format, or a model that magnifies rounding?"""
