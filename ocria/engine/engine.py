"""The engine's loop: admit, prefill, verify, commit, finish.

Knows token ids, patches and states; not PDFs, files, prompts' wording, Markdown or the terminal.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ocria.engine.graphs import GraphRunner
from ocria.engine.memory import is_out_of_memory
from ocria.engine.request import Outcome, Request, Result, Running
from ocria.engine.scheduler import Scheduler
from ocria.engine.speculative import Draft, Judged, Verdict, verify
from ocria.engine.state import StatePool
from ocria.errors import DeviceError, PageError
from ocria.models.base import WINDOW, Chunk, Target, Window


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineConfig:
    """How the engine runs.

    Attributes:
        stop_ids: tokens that end a page; never emitted.
        forbidden_ids: tokens that are never chosen.
        max_positions: longest prompt and output together.
        num_slots: sequences held at once.
        window: rows of a sequence in a verify pass: its last token and `window` - 1 proposals.
        chunks_per_step: prompt chunks that are read between two verify passes at most.
    """

    stop_ids: frozenset[int]
    forbidden_ids: frozenset[int]
    max_positions: int
    num_slots: int = 1
    window: int = 16
    chunks_per_step: int = 8

    def __post_init__(self) -> None:
        assert 1 <= self.window <= WINDOW, f"window must be 1 to {WINDOW}, not {self.window}"
        assert self.num_slots >= 1 and self.chunks_per_step >= 1


class Engine:
    """Decodes requests on one target; a result depends on neither proposals nor company."""

    def __init__(self, target: Target, config: EngineConfig) -> None:
        self._target = target
        self._graphs = GraphRunner(target, sorted(config.forbidden_ids))
        self._config = config
        self._pool = StatePool(
            target, num_slots=config.num_slots, max_positions=config.max_positions
        )
        self._scheduler = Scheduler(self._pool, chunks_per_step=config.chunks_per_step)
        self._next_ticket = 0
        forbidden = torch.tensor(sorted(config.forbidden_ids), dtype=torch.long)
        self._forbidden = forbidden.to(target.device)

    @property
    def num_slots(self) -> int:
        """Sequences that fit now: fewer than asked for once memory ran out."""
        return self._pool.num_slots

    @property
    def num_requests(self) -> int:
        """Requests that wait or run."""
        return self._scheduler.num_waiting + self._scheduler.num_running

    def submit(self, request: Request) -> int:
        """Queues a request; its ticket.

        Raises:
            DeviceError: the prompt and the token limit do not fit a slot.
        """
        length = len(request.prompt.token_ids)
        if length + request.max_tokens + WINDOW > self._pool.max_positions:
            raise DeviceError("the page and its token limit do not fit the engine's positions")
        ticket = self._next_ticket
        self._next_ticket += 1
        self._scheduler.add(ticket, request)
        return ticket

    def cancel(self, ticket: int) -> bool:
        """Forgets a request that is not finished; whether there was one."""
        return self._scheduler.cancel(ticket)

    def run(self, request: Request) -> Result:
        """Decodes one request to its end, stepping whatever else is queued along.

        Raises:
            PageError: it could not be decoded.
        """
        ticket = self.submit(request)
        for finished, outcome in self.stream():
            if finished == ticket:
                if isinstance(outcome, PageError):
                    raise outcome
                return outcome
        raise AssertionError("the engine went idle before the request finished")

    def stream(self) -> Iterator[tuple[int, Outcome]]:
        """Steps until idle; tickets and results as they finish."""
        while not self._scheduler.is_idle:
            yield from self.step()

    def close(self) -> None:
        """Forgets all requests."""
        self._scheduler.cancel_all()

    def step(self) -> list[tuple[int, Outcome]]:
        """One round: some chunks of prompts, one verify pass over everybody who is read."""
        self._scheduler.admit()
        if not self._fits(self._advance):
            self._make_room()
        return [(running.ticket, running.outcome()) for running in self._scheduler.take_done()]

    def _advance(self) -> None:
        for together in self._scheduler.to_prefill(self._graphs.chunks_at_once):
            self._prefill(together)
        if verifying := self._scheduler.to_verify():
            self._verify(verifying)

    @staticmethod
    def _fits(work: Callable[[], None]) -> bool:
        """Does the work; false if memory ran out. What the work held is free by then."""
        try:
            work()
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            return False
        return True

    def _prefill(self, together: Sequence[Running]) -> None:
        """Reads a chunk of each prompt; the last one chooses a page's first token."""
        for running in together:
            if running.state.length == 0:
                self._open(running)
        started = time.perf_counter()
        chunks = [Chunk(r.state, r.request.prompt, r.image_ND) for r in together]
        outputs = self._graphs.prefill(chunks)
        num_rows = [chunk.num_rows for chunk in chunks]
        for running, output, count in zip(together, outputs, num_rows, strict=True):
            self._pool.commit_prompt(running.state, count)
            self._hand_over(running, output.taps_TLD, slice(0, count))
            if running.is_read:
                self._begin(running, output.logits_TV)
        share_s = (time.perf_counter() - started) / len(together)
        for running in together:
            running.prefill_s += share_s

    def _open(self, running: Running) -> None:
        """What comes before a page's first chunk."""
        request, started = running.request, time.perf_counter()
        if request.image is not None:
            running.image_ND = self._graphs.encode_image(request.image)
            running.vision_s = time.perf_counter() - started
        if request.drafter is not None:
            request.drafter.prepare(request.prompt)

    def _begin(self, running: Running, logits_TV: Tensor) -> None:
        """Chooses the first token of a page whose prompt is read."""
        running.image_ND, request = None, running.request
        logits_TV = self._allowed(logits_TV)
        if request.not_first:
            banned = torch.tensor(sorted(request.not_first), device=logits_TV.device)
            logits_TV = logits_TV.index_fill(-1, banned, -torch.inf)
        sure = Judged(Draft(), request.sampling, 0)
        self._emit(running, *verify(logits_TV, [sure]), is_first=True)

    def _verify(self, verifying: Sequence[Running]) -> None:
        """One target pass: everybody's last token and proposals; what is right becomes real."""
        started = time.perf_counter()
        drafts = [self._propose(running) for running in verifying]
        with_logits = any(running.request.sampling is not None for running in verifying)
        launched = self._graphs.launch(
            [
                Window(running.state, (running.token_ids[-1], *draft.token_ids))
                for running, draft in zip(verifying, drafts, strict=True)
            ],
            with_logits=with_logits,
        )
        # While the device runs the pass.
        judged = [
            Judged(draft, running.request.sampling, len(running.token_ids))
            for running, draft in zip(verifying, drafts, strict=True)
        ]
        logits_TV, taps_TLD, _ = launched.output
        if len(logits_TV):
            logits_TV = self._allowed(logits_TV[: launched.num_rows])
        verdicts = verify(logits_TV, judged, launched.best())
        self._pool.commit(
            (running.state, len(verdict.token_ids))
            for running, verdict in zip(verifying, verdicts, strict=True)
        )
        first = 0
        for running, draft, verdict in zip(verifying, drafts, verdicts, strict=True):
            real = slice(first, first + len(verdict.token_ids))
            self._hand_over(running, taps_TLD, real)
            self._emit(running, verdict)
            first += 1 + len(draft.token_ids)
        share_s = (time.perf_counter() - started) / len(verifying)
        for running in verifying:
            running.steps += 1
            running.decode_s += share_s

    def _propose(self, running: Running) -> Draft:
        request = running.request
        wanted = min(self._config.window - 1, request.max_tokens - len(running.token_ids) - 1)
        if request.drafter is None or wanted < 1:
            return Draft()
        # A drafter is never trusted: it gets a copy of what was emitted, and what the vocabulary
        # does not hold ends its proposal.
        proposal = request.drafter.propose(tuple(running.token_ids), wanted)
        draft = proposal if isinstance(proposal, Draft) else Draft(tuple(proposal[:wanted]))
        usable = min(wanted, self._num_usable(draft))
        return draft if usable == len(draft.token_ids) else draft.first(usable)

    def _num_usable(self, draft: Draft) -> int:
        vocab_size, forbidden_ids = self._target.vocab_size, self._config.forbidden_ids
        is_sure = draft.probabilities is None
        for place, token in enumerate(draft.token_ids):
            known = 0 <= token < vocab_size and token not in forbidden_ids
            if not known or not (is_sure or draft.explains(place)):
                return place
        return len(draft.token_ids)

    def _allowed(self, logits_TV: Tensor) -> Tensor:
        return logits_TV.index_fill(-1, self._forbidden, -torch.inf)

    def _hand_over(self, running: Running, taps_TLD: Tensor | None, real: slice) -> None:
        if taps_TLD is not None and running.tapping is not None:
            running.tapping.tap(taps_TLD[real])

    def _emit(self, running: Running, verdict: Verdict, *, is_first: bool = False) -> None:
        """Appends what a pass emits, up to a stop token, the limit or a loop."""
        if any(map(math.isnan, verdict.logprobs)):
            running.error = PageError("decode_failed", "the model's output is not a number")
            return
        emitted = len(verdict.token_ids)
        for index, token in enumerate(verdict.token_ids):
            if token in self._config.stop_ids:
                running.finish, emitted = "eos", index
                break
            if len(running.token_ids) + index == running.request.max_tokens:
                running.finish, emitted = "length", index
                break
        kept = verdict.token_ids[:emitted]
        running.token_ids += kept
        running.logprobs += verdict.logprobs[:emitted]
        if not is_first:
            running.accepted.append(emitted)
        if running.request.drafter is not None:
            num_accepted = min(emitted, len(verdict.token_ids) - 1)
            running.request.drafter.observe(tuple(kept), num_accepted)
        loop = running.guard.observe(kept)
        if loop is not None:
            del running.token_ids[loop.start :], running.logprobs[loop.start :]
            running.finish = "loop"

    def _make_room(self) -> None:
        """Memory ran out: begin again with half the slots; alone, a page fails.

        Beginning again gives the same bytes: nothing of a page depends on its company.
        """
        if self._pool.num_slots == 1:
            message = "the page does not fit in memory; try a lower --dpi or --max-tokens"
            self._scheduler.fail_all(PageError("out_of_memory", message))
            return
        self._scheduler.send_back()
        self._pool.resize(self._pool.num_slots // 2)
