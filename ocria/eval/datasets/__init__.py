"""Datasets in the layouts of the field, as typed items."""

from ocria.eval.datasets.detect import load_dataset

__all__ = ["load_dataset"]
