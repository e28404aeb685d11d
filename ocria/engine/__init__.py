"""The engine: token ids, patches and states in, token ids out.

Scheduler decides, state pool owns memory, drafter proposes, verifier decides.
"""

from ocria.engine.engine import Engine, EngineConfig
from ocria.engine.request import Finish, Outcome, Request, Result

__all__ = ["Engine", "EngineConfig", "Finish", "Outcome", "Request", "Result"]
