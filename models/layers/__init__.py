"""Building blocks shared by target and drafter."""
