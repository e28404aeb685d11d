"""Speculative decoding: a drafter proposes, one verify loop decides."""

from ocria.engine.speculative.auto import AutoDrafter, Source
from ocria.engine.speculative.drafter import Drafter
from ocria.engine.speculative.ngram import NgramDrafter
from ocria.engine.speculative.pass_cost import PassCost
from ocria.engine.speculative.verifier import Verdict, verify_greedy

__all__ = [
    "AutoDrafter",
    "Drafter",
    "NgramDrafter",
    "PassCost",
    "Source",
    "Verdict",
    "verify_greedy",
]
