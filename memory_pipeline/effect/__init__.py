"""What memory held before each day, compared with what users typed and which calls failed on it."""
