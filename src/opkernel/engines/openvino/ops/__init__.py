"""What OpenVINO makes of ops, by topic."""
