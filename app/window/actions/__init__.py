"""What a person can do in the window: the registry, the list of actions, and those about files.

No widgets; a button, a menu or a key triggers an action by its id.
"""
