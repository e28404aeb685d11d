"""The products of a qwen3_5 decoder that can be quantised, as they run and as they are stored."""

from dataclasses import dataclass

from ocria.models.qwen3_5.config import TextConfig

DECODER = "model.language_model"
EMBEDDING = f"{DECODER}.embed_tokens"
HEAD = "lm_head"


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """One product of the decoder.

    Attributes:
        name: path of the module that multiplies, in a model that is ready to run.
        members: stored modules whose rows it holds, in order. They read the same input and share
            one global scale.
    """

    name: str
    members: tuple[str, ...]


_MIXERS = {
    "linear_attention": (
        ("linear_attn.in_proj_qkvz", ("in_proj_qkv", "in_proj_z")),
        ("linear_attn.out_proj", ("out_proj",)),
    ),
    "full_attention": (
        ("self_attn.qkv_proj", ("q_proj", "k_proj", "v_proj")),
        ("self_attn.o_proj", ("o_proj",)),
    ),
}
_FEED_FORWARD = (
    ("mlp.gate_up_proj", ("gate_proj", "up_proj")),
    ("mlp.down_proj", ("down_proj",)),
)


def decoder_sites(config: TextConfig) -> tuple[Site, ...]:
    """Products of all layers in the order in which they run.

    Gates of the recurrence are left out: they are small, and a wrong decay spoils a whole state.
    """
    sites = []
    for layer, kind in enumerate(config.layer_types):
        for path, leaves in (*_MIXERS[kind], *_FEED_FORWARD):
            place = f"{DECODER}.layers.{layer}.{path}"
            parent = place.rpartition(".")[0]
            members = tuple(f"{parent}.{leaf}" for leaf in leaves)
            sites.append(Site(name=place, members=members))
    return tuple(sites)
