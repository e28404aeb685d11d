"""The `qwen3_5` architecture: vision tower and hybrid decoder, sized by config.json."""
