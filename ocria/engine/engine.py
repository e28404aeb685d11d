"""The engine's loop: admit, prefill, verify, commit, finish.

Knows token ids, patches and states; not PDFs, files, prompts' wording, Markdown or the terminal.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ocria.engine.loop_guard import LoopGuard
from ocria.engine.request import Request, Result, Running
from ocria.engine.scheduler import Scheduler
from ocria.engine.speculative import verify_greedy
from ocria.engine.state import StatePool
from ocria.errors import DeviceError, PageError
from ocria.models.base import WINDOW, Target


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineConfig:
    """How the engine runs.

    Attributes:
        stop_ids: tokens that end a page; never emitted.
        forbidden_ids: tokens that are never chosen.
        max_positions: longest prompt and output together.
        num_slots: sequences held at once.
        window: rows of a verify pass: the last token and up to `window` - 1 proposals.
    """

    stop_ids: frozenset[int]
    forbidden_ids: frozenset[int]
    max_positions: int
    num_slots: int = 1
    window: int = 16

    def __post_init__(self) -> None:
        assert 1 <= self.window <= WINDOW, f"window must be 1 to {WINDOW}, not {self.window}"


class Engine:
    """Decodes requests greedily on one target; the result does not depend on proposals."""

    def __init__(self, target: Target, config: EngineConfig) -> None:
        self._target = target
        self._config = config
        self._pool = StatePool(
            target, num_slots=config.num_slots, max_positions=config.max_positions
        )
        self._scheduler = Scheduler(self._pool)
        self._guards: dict[int, LoopGuard] = {}
        self._next_ticket = 0
        forbidden = torch.tensor(sorted(config.forbidden_ids), dtype=torch.long)
        self._forbidden = forbidden.to(target.device)

    def submit(self, request: Request) -> int:
        """Queues a request; its ticket."""
        ticket = self._next_ticket
        self._next_ticket += 1
        self._scheduler.add(ticket, request)
        return ticket

    def run(self, request: Request) -> Result:
        """Decodes one request to its end, stepping whatever else is queued along."""
        ticket = self.submit(request)
        for finished, result in self.stream():
            if finished == ticket:
                return result
        raise AssertionError("the engine went idle before the request finished")

    def stream(self) -> Iterator[tuple[int, Result]]:
        """Steps until idle; tickets and results as they finish."""
        while not self._scheduler.is_idle:
            yield from self.step()

    def close(self) -> None:
        """Forgets all requests."""
        self._scheduler.cancel_all()
        self._guards.clear()

    def step(self) -> list[tuple[int, Result]]:
        """One round: prefill what was admitted, one verify pass for each running sequence."""
        for ticket, running in self._scheduler.admit():
            self._guards[ticket] = LoopGuard()
            self._prefill(ticket, running)
        for ticket, running in self._scheduler.running.items():
            if running.finish is None:
                self._verify(ticket, running)
        done = [t for t, running in self._scheduler.running.items() if running.finish is not None]
        return [(ticket, self._finish(ticket)) for ticket in done]

    def _prefill(self, ticket: int, running: Running) -> None:
        request, started = running.request, time.perf_counter()
        image_ND = None if request.image is None else self._target.encode_image(request.image)
        seen = time.perf_counter()
        prompt = request.prompt
        if len(prompt.token_ids) + request.max_tokens + WINDOW > self._pool.max_positions:
            raise DeviceError("the page and its token limit do not fit the engine's positions")
        if request.drafter is not None:
            request.drafter.prepare(prompt.token_ids)
        logits_V = self._target.prefill(running.state, prompt, image_ND)
        self._pool.commit_prompt(running.state, len(prompt.token_ids))
        self._emit(ticket, running, self._allowed(logits_V[None]), ())
        running.vision_s, running.prefill_s = seen - started, time.perf_counter() - seen

    def _verify(self, ticket: int, running: Running) -> None:
        started = time.perf_counter()
        proposals = self._propose(running)
        logits_TV = self._target.verify(running.state, [running.token_ids[-1], *proposals])
        running.steps += 1
        kept = self._emit(ticket, running, self._allowed(logits_TV), proposals)
        self._pool.commit(running.state, kept)
        running.decode_s += time.perf_counter() - started

    def _propose(self, running: Running) -> tuple[int, ...]:
        request = running.request
        wanted = min(self._config.window - 1, request.max_tokens - len(running.token_ids) - 1)
        if request.drafter is None or wanted < 1:
            return ()
        proposals = request.drafter.propose(tuple(running.token_ids), wanted)
        # A drafter is never trusted: it gets a copy of what was emitted, and what the vocabulary
        # does not hold ends its proposal.
        usable = []
        for token in proposals[:wanted]:
            if not 0 <= token < self._target.vocab_size or token in self._config.forbidden_ids:
                break
            usable.append(token)
        return tuple(usable)

    def _allowed(self, logits_TV: Tensor) -> Tensor:
        return logits_TV.index_fill(-1, self._forbidden, -torch.inf)

    def _emit(
        self, ticket: int, running: Running, logits_TV: Tensor, proposals: tuple[int, ...]
    ) -> int:
        """Judges a window and appends what it emits; how many of its rows became real."""
        verdict = verify_greedy(logits_TV, proposals)
        if any(math.isnan(logprob) for logprob in verdict.logprobs):
            raise PageError("decode_failed", "the model's output is not a number")
        emitted = len(verdict.token_ids)
        for index, token in enumerate(verdict.token_ids):
            if token in self._config.stop_ids:
                running.finish, emitted = "eos", index
                break
            if len(running.token_ids) + index == running.request.max_tokens:
                running.finish, emitted = "length", index
                break
        running.token_ids += verdict.token_ids[:emitted]
        running.logprobs += verdict.logprobs[:emitted]
        running.accepted.append(emitted)
        if running.request.drafter is not None:
            num_accepted = min(emitted, len(verdict.token_ids) - 1)
            running.request.drafter.observe(tuple(verdict.token_ids[:emitted]), num_accepted)
        self._cut_loop(ticket, running, verdict.token_ids[:emitted])
        return len(verdict.token_ids)

    def _cut_loop(self, ticket: int, running: Running, emitted: list[int]) -> None:
        loop = self._guards[ticket].observe(emitted)
        if loop is not None:
            del running.token_ids[loop.start :], running.logprobs[loop.start :]
            running.finish = "loop"

    def _finish(self, ticket: int) -> Result:
        running = self._scheduler.finish(ticket)
        del self._guards[ticket]
        histogram = [0] * (max(running.accepted[1:], default=0) + 1)
        for emitted in running.accepted[1:]:
            histogram[emitted] += 1
        assert running.finish is not None, "only finished requests leave"
        return Result(
            token_ids=tuple(running.token_ids),
            logprobs=tuple(running.logprobs),
            finish=running.finish,
            steps=running.steps,
            accepted=tuple(histogram),
            vision_s=running.vision_s,
            prefill_s=running.prefill_s,
            decode_s=running.decode_s,
        )
