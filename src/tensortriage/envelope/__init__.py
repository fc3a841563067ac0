"""The results that healthy engines may give on a feed, measured from the model and the feed alone.

An error is a fault only if no healthy engine could have made it. So the model is evaluated several times by evaluations
that are healthy by construction and differ in the choices that engines are free to make; their distance is the noise
floor of every tensor. Nothing under judgement enters it: neither the target's results nor the reference's.
"""
