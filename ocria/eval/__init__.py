"""Accuracy: any engine's reading of a dataset held against its truth."""

from ocria.eval.options import EvalOptions, parse_shard
from ocria.eval.report import EvalReport
from ocria.eval.run import evaluate

__all__ = ["EvalOptions", "EvalReport", "evaluate", "parse_shard"]
