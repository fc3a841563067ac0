"""Is it a fusion, or an option of the target?"""
