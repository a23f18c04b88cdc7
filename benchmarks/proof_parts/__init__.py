"""What memory would have shown when it was needed: decisions, real history and changing preferences."""
