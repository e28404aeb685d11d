"""Bit formats of weights: NVFP4 and FP8, and the compressed-tensors layout that stores them.

Knows no architecture.
"""
