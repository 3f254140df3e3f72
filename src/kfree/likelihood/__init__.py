"""From labels and neighborhoods to log pseudo-likelihoods. Never coordinates."""
