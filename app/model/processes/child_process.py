"""A process of Qt's that is to run one of our own modules: `profiler.process.children` for `QProcess`."""

from __future__ import annotations

import os

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment

from profiler.process import children


def child_process(parent: QObject, **extra: str) -> QProcess:
    """Return a process to start with `children.python(…)`, its environment that of children with `extra` on top.

    It stands in the folder that this process stands in, so that relative paths mean the same.
    """
    process = QProcess(parent)
    wanted = children.environment(extra)
    # Only what differs: variables of other programs may hold bytes that are no text.
    environment = QProcessEnvironment.systemEnvironment()
    for name in os.environ.keys() - wanted.keys():
        environment.remove(name)
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            environment.insert(name, value)
    process.setProcessEnvironment(environment)
    return process
