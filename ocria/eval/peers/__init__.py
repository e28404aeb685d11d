"""Other readers, each through its own package, given the same page images as OCRia."""
