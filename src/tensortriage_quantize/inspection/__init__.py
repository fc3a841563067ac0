"""Quantizers: does every pair fit the values that reach it, and every block its weights, and at which cost?"""
