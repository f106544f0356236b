"""Numbers that decide: thresholds with their evidence, profiles of devices, trees."""
