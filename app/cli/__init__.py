"""The command line: one module per verb, named after it; `main` finds them by listing this folder.

The docstring of a verb is its help; the module has `arguments(parser)` and `run(arguments)`, which may return an exit
status. Modules with a leading underscore are shared helpers. Qt is imported only for a window or a picture.
"""
