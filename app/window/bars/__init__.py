"""The bars of the window: run and figures at the top, the transport of the session, the status line."""
