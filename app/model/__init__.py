"""What the window shows, without widgets or painting; bars, form and views read these and ask them for changes."""
