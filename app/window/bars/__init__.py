"""The bars of the window: run and figures on top, the session's transport, the status line."""
