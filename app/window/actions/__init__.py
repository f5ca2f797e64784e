"""What a user can do in the window: the registry, the list of actions, and the file actions.

No widgets: a button, a menu or a key triggers an action by its id.
"""
