"""The processes that the window starts and talks to; what comes of a run is read from its session, not from here."""
