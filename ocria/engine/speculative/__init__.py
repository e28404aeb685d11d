"""Speculative decoding: a drafter proposes, one verify loop decides."""

from ocria.engine.speculative.auto import GRANT, AutoDrafter, Source
from ocria.engine.speculative.dflash import DFlashDrafter
from ocria.engine.speculative.dflash_room import DraftRooms
from ocria.engine.speculative.drafter import Draft, Drafter, TapDrafter
from ocria.engine.speculative.mtp import MtpDrafter
from ocria.engine.speculative.ngram import NgramDrafter, Past
from ocria.engine.speculative.pass_cost import PassCost
from ocria.engine.speculative.sampling import Sampling
from ocria.engine.speculative.verifier import Judged, Verdict, verify

__all__ = [
    "GRANT",
    "AutoDrafter",
    "DFlashDrafter",
    "Draft",
    "DraftRooms",
    "Drafter",
    "Judged",
    "MtpDrafter",
    "NgramDrafter",
    "PassCost",
    "Past",
    "Sampling",
    "Source",
    "TapDrafter",
    "Verdict",
    "verify",
]
