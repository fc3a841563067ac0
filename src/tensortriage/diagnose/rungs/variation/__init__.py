"""Does the target give the same answer in every run, and in every build?"""
