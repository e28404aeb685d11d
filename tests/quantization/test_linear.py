"""Products with packed weights: the bits of plain ones, whatever the tiles and the neighbours."""

import pytest
import torch
from torch import Tensor

from ocria.models.layers.linear import TiledLinear
from ocria.quantization import fp8, linear, nvfp4
from ocria.quantization.layouts import PackedTensor
from ocria.quantization.linear import PackedLinear


def random(num_rows: int, num_columns: int, seed: int = 0) -> Tensor:
    return torch.randn(num_rows, num_columns, generator=torch.Generator().manual_seed(seed))


def parts() -> list[PackedTensor]:
    return [nvfp4.quantize(random(80, 64)), fp8.quantize(random(36, 64, 1))]


def whole(packed: list[PackedTensor], dtype: torch.dtype) -> Tensor:
    first, second = packed
    assert isinstance(first, nvfp4.NVFP4Tensor) and isinstance(second, fp8.FP8Tensor)
    return torch.cat([nvfp4.dequantize(first, dtype), fp8.dequantize(second, dtype)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tile", [1, 24 * 64, 1 << 20])
@pytest.mark.parametrize("num_rows", [16, 256])
def test_bits_of_the_plain_product(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, tile: int, num_rows: int
) -> None:
    monkeypatch.setattr(linear, "TILE_WEIGHTS", tile)
    packed, x_TK = parts(), random(num_rows, 64, 2).to(dtype)
    plain = TiledLinear(64, 116)
    plain.weight = torch.nn.Parameter(whole(packed, dtype), requires_grad=False)
    plain.pack()
    assert torch.equal(PackedLinear(packed).product(x_TK), plain(x_TK))


def test_only_a_tile_is_dequantised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "TILE_WEIGHTS", 17 * 64)
    tiles = list(PackedLinear(parts()).tiles(torch.float32))
    # 80 rows are 17 four times and 12 more, 36 are twice 17 and 2 more.
    assert [tile.shape[0] for tile in tiles] == [17, 17, 17, 29, 17, 19]
    assert torch.equal(torch.cat(tiles), whole(parts(), torch.float32))


@pytest.mark.parametrize("packed", parts())
def test_rows_of_an_embedding(packed: PackedTensor) -> None:
    ids = torch.tensor([3, 0, 3, 35])
    rows = PackedLinear([packed]).rows(ids, torch.bfloat16)
    table = torch.cat(list(PackedLinear([packed]).tiles(torch.bfloat16)))
    assert torch.equal(rows, table[ids])


def test_bytes_are_those_that_are_stored() -> None:
    found = PackedLinear(parts())
    assert found.out_features == 116
    assert found.num_bytes == 80 * (32 + 4) + 4 + 36 * (64 + 4)
