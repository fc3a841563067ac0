"""Which single op is wrong by itself, and how?"""
