"""Speed claims as ratios, each measured side by side in one run: ``make bench``."""
