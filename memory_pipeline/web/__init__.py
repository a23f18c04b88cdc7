"""The local page: review, memory, search and quality in the browser, with the functions of the command line."""
