"""Which single op is wrong in isolation, and how?"""
