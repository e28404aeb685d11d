"""Makes the checkpoint that ships from a bf16 Hugging Face folder. See make.py."""
