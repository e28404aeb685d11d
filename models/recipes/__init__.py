"""Recipes: how the shipped checkpoints are made. Not part of the wheel."""
