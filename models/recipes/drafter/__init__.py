"""Training a DFlash drafter for a target that reads self-made pages."""
