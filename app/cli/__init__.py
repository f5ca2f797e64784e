"""The command line: one module per verb, named after it; `main` finds them by listing this folder.

A verb's docstring is its help; it offers `arguments(parser)` and `run(arguments) -> exit status`.
Modules with a leading underscore are shared helpers. No Qt is imported unless a window or picture is asked for.
"""
