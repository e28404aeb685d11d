"""Self-made pages with exact truth: typeset, rasterised, degraded, and described in markup."""
