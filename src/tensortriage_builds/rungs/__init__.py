"""Questions of the ladder: did the target build the model in the form, format and precision that was meant?"""
