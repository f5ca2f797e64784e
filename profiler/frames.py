"""The unit in which a session counts audio; nothing is imported, so that the window can be shown before numpy is."""

from typing import Final

FRAME_S: Final = 0.01
"""Seconds from one frame to the next: the hop of the front end, by which a session numbers its frames."""
