"""Frozen suites: pages made here with exact truth, for `ocria eval` alone.

    python -m ocria.models.recipes.suites.build --corpus DIR --fonts DIR OUT

The layouts are simpler than those that training draws from, and are made by other code, so that a
model is not measured on the pages of its own generator. Text comes from documents that are held
out of training, or is random.
"""
