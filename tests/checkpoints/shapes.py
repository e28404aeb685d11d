"""Configs of the family's sizes, by the architecture's specification, and small ones like them."""

from typing import Any

VOCABULARY = 248_320
SURYA_VOCABULARY = 65_425
IDS = {
    "image_token_id": 248_056,
    "video_token_id": 248_057,
    "vision_start_token_id": 248_053,
    "vision_end_token_id": 248_054,
}
# hidden, feed-forward, layers, query heads, key-value heads, value heads of the delta rule, tied.
_TEXT = {
    "0.8B": (1024, 3584, 24, 8, 2, 16, True),
    "4B": (2560, 9216, 32, 16, 4, 32, True),
    "9B": (4096, 12288, 32, 16, 4, 32, False),
    "27B": (5120, 17408, 64, 24, 4, 48, False),
}
# depth, width, heads, feed-forward.
_VISION = {
    "0.8B": (12, 768, 12, 3072),
    "4B": (24, 1024, 16, 4096),
    "9B": (27, 1152, 16, 4304),
    "27B": (27, 1152, 16, 4304),
}
MILLIONS: dict[str, dict[str, float]] = {
    "0.8B": {"total": 853, "vision": 100.6, "embedding": 254.3, "mlp": 264.2, "delta": 189.3,
             "attention": 44.0},
    "surya": {"total": 665.7, "vision": 100.6, "embedding": 67.0, "mlp": 264.2, "delta": 189.3,
              "attention": 44.0},
    "4B": {"total": 4539, "vision": 333.5, "embedding": 635.7, "mlp": 2264.9, "delta": 1010.6,
           "attention": 293.6},
    "9B": {"total": 9410, "vision": 456, "embedding": 1017, "mlp": 4831.8, "delta": 1616.9,
           "attention": 469.8},
    "27B": {"total": 27357, "vision": 460.7, "embedding": 1271, "mlp": 17113, "delta": 5560,
            "attention": 1678},
}  # fmt: skip
"""Parameters by part, in millions: counted by the specification's authors on the meta device."""


def family_config(size: str, *, vocab_size: int = VOCABULARY) -> dict[str, Any]:
    """config.json of a full-size model."""
    hidden, ffn, layers, heads, kv_heads, value_heads, tied = _TEXT[size]
    depth, width, vision_heads, vision_ffn = _VISION[size]
    return {
        "model_type": "qwen3_5",
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "tie_word_embeddings": tied,
        **IDS,
        "text_config": {
            "model_type": "qwen3_5_text",
            "vocab_size": vocab_size,
            "hidden_size": hidden,
            "intermediate_size": ffn,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "head_dim": 256,
            "linear_num_key_heads": 16,
            "linear_num_value_heads": value_heads,
            "linear_key_head_dim": 128,
            "linear_value_head_dim": 128,
            "linear_conv_kernel_dim": 4,
            "full_attention_interval": 4,
            "layer_types": [
                "linear_attention" if (layer + 1) % 4 else "full_attention"
                for layer in range(layers)
            ],
            "hidden_act": "silu",
            "attention_bias": False,
            "attn_output_gate": True,
            "mamba_ssm_dtype": "float32",
            "rms_norm_eps": 1e-6,
            "max_position_embeddings": 262_144,
            "mtp_num_hidden_layers": 1,
            "mtp_use_dedicated_embeddings": False,
            "eos_token_id": 248_044,
            "tie_word_embeddings": tied,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10_000_000,
                "partial_rotary_factor": 0.25,
                "mrope_section": [11, 11, 10],
                "mrope_interleaved": True,
            },
        },
        "vision_config": {
            "model_type": "qwen3_5_vision",
            "depth": depth,
            "hidden_size": width,
            "num_heads": vision_heads,
            "intermediate_size": vision_ffn,
            "patch_size": 16,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "in_channels": 3,
            "num_position_embeddings": 2304,
            "out_hidden_size": hidden,
            "hidden_act": "gelu_pytorch_tanh",
            "deepstack_visual_indexes": [],
        },
    }


def shrunk(size: str, *, vocab_size: int, ids: dict[str, int], hidden: int = 256) -> dict[str, Any]:
    """The same with true heads everywhere, but 4 layers, one vision block and a small width."""
    config = family_config(size, vocab_size=vocab_size)
    text, vision = config["text_config"], config["vision_config"]
    text.update(
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=4,
        layer_types=text["layer_types"][:4],
    )
    vision.update(depth=1, out_hidden_size=hidden)
    return {**config, **ids}
