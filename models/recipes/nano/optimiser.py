"""Muon for matrices, AdamW for the rest, over one flat gradient buffer."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

# Jordan 2024, "Muon": quintic Newton-Schulz coefficients.
_QUINTIC = (3.4445, -4.7750, 2.0315)
# Updates before one is captured: they make the state, and the libraries' workspaces.
_PLAIN_UPDATES = 3
_NOT_MUON = ("embed", "conv1d", "patch_embed", "in_proj_a", "in_proj_b")


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Peak learning rate, Muon's weight decay and momentum, and the gradient's norm limit."""

    peak: float = 1.2e-3
    decay: float = 0.05
    momentum: float = 0.95
    max_norm: float = 1.0


class Optimiser:
    """Steps a model's parameters; gradients live in one buffer so one reduction serves all."""

    def __init__(
        self, model: nn.Module, rates: Rates, *, not_muon: tuple[str, ...] = _NOT_MUON
    ) -> None:
        self.rates = rates
        named = list(model.named_parameters())
        matrices = [
            p for name, p in named if p.dim() == 2 and not any(part in name for part in not_muon)
        ]
        chosen = {id(p) for p in matrices}
        self._groups: dict[tuple[int, ...], list[nn.Parameter]] = defaultdict(list)
        for parameter in matrices:
            self._groups[tuple(parameter.shape)].append(parameter)
        self._momenta = {
            shape: torch.zeros(len(group), *shape, device=group[0].device)
            for shape, group in self._groups.items()
        }
        rest = [p for _, p in named if id(p) not in chosen]
        self.flat = self._flatten([p for _, p in named])
        # On the device, where a captured update finds them.
        self._rate, self._norm = self.flat.new_zeros(()), self.flat.new_zeros(())
        on_device = self.flat.is_cuda
        self._adam = torch.optim.AdamW(
            rest, lr=self._rate if on_device else rates.peak, betas=(0.9, 0.95), weight_decay=0.0,
            fused=on_device, capturable=on_device,
        )  # fmt: skip
        self._graph: torch.cuda.CUDAGraph | None = None
        self._num_plain = 0

    @staticmethod
    def _flatten(parameters: list[nn.Parameter]) -> Tensor:
        flat = torch.zeros(sum(p.numel() for p in parameters), device=parameters[0].device)
        at = 0
        for parameter in parameters:
            parameter.grad = flat[at : at + parameter.numel()].view_as(parameter)
            at += parameter.numel()
        return flat

    def reduce(self) -> Tensor:
        """Averages the gradient over ranks and returns its norm (on the device)."""
        if dist.is_initialized():
            # A sum, since gloo knows no mean: the same code runs on CPUs.
            dist.all_reduce(self.flat)
            self.flat.div_(dist.get_world_size())
        return self.flat.norm()

    @torch.no_grad()
    def step(self, scale: float, norm: Tensor) -> None:
        """One update at `scale` times the peak rate. The caller skips non-finite norms.

        On a GPU the update is captured after a few plain ones: its many small launches would leave
        the device idle until the host has caught up.
        """
        self._rate.fill_(self.rates.peak * scale)
        self._norm.copy_(norm)
        for options in self._adam.param_groups:
            # Anew each time: loading a state puts a copy there, which would stay as it is.
            options["lr"] = self._rate if self.flat.is_cuda else self.rates.peak * scale
        if self._graph is None and self.flat.is_cuda and self._num_plain >= _PLAIN_UPDATES:
            self._graph = torch.cuda.CUDAGraph()
            # Other threads may go on pinning memory meanwhile.
            with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
                self._update()
        if self._graph is not None:
            self._graph.replay()
            return
        self._num_plain += 1
        self._update()

    def _update(self) -> None:
        self.flat.mul_((self.rates.max_norm / (self._norm + 1e-6)).clamp(max=1.0))
        for shape, group in self._groups.items():
            self._muon(shape, group)
        self._adam.step()

    def _muon(self, shape: tuple[int, ...], group: list[nn.Parameter]) -> None:
        gradient = torch.stack([p.grad for p in group if p.grad is not None])
        momentum = self._momenta[shape].mul_(self.rates.momentum).add_(gradient)
        update = orthogonal((gradient + self.rates.momentum * momentum).bfloat16()).float()
        update = update * (-0.2 * max(shape) ** 0.5 * self._rate)
        torch._foreach_mul_(group, 1 - self._rate * self.rates.decay)
        torch._foreach_add_(group, list(update.unbind(0)))

    def state(self) -> dict[str, Tensor]:
        """Flat tensors for a safetensors checkpoint."""
        tensors = {f"muon.{'x'.join(map(str, s))}": m for s, m in self._momenta.items()}
        for index, moments in self._adam.state_dict()["state"].items():
            for name, tensor in moments.items():
                tensors[f"adam.{index}.{name}"] = tensor
        return tensors

    def load(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `state`."""
        self._graph, self._num_plain = None, 0
        for shape, momentum in self._momenta.items():
            momentum.copy_(tensors[f"muon.{'x'.join(map(str, shape))}"])
        state = self._adam.state_dict()
        for name, tensor in tensors.items():
            kind, index, *rest = name.split(".", 2)
            if kind == "adam":
                state["state"].setdefault(int(index), {})[rest[0]] = tensor
        self._adam.load_state_dict(state)


def orthogonal(update: Tensor) -> Tensor:
    """The nearest semi-orthogonal matrices [N, rows, columns], by five Newton-Schulz steps."""
    tall = update.shape[1] > update.shape[2]
    x = update.mT if tall else update
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = _QUINTIC
    for _ in range(5):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x
