"""OCRia-1 nano: vocabulary, trainer, export and evaluation."""
