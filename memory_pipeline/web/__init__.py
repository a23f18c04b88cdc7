"""The page: review, memory, search and quality in the browser, by the functions that the command line calls."""
