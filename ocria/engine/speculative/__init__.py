"""Speculative decoding: a drafter proposes, one verify loop decides."""

from ocria.engine.speculative.verifier import Verdict, verify_greedy

__all__ = ["Verdict", "verify_greedy"]
