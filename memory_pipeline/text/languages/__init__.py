"""What a text shows in other languages than English: which one it is in, and the cues of those that have any."""
