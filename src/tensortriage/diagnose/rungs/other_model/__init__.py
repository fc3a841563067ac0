"""Is the target's file another model than the reference's, and where does it depart from it?"""
