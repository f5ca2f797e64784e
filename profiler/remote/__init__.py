"""A session that another machine records, copied here while it grows: the stream of its rows, both ends, and the link.

No socket listens anywhere: the stream is the output of a command that ssh runs, and commands to the run are its input.
"""
