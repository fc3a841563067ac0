"""Is the engine, and the file that it runs, the one that was meant?"""
