"""What is measured of each step, and whether it is as right as a healthy engine makes it."""
