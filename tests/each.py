"""A table of cases in one test: what pytest collects, sets up and reports for every case of its own costs more."""

import inspect
from collections.abc import Callable, Collection
from typing import Any

import pytest


def each(names: str, cases: Collection[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run the test for each case in turn; the one that fails is named in a note of its exception.

    As `pytest.mark.parametrize`, but fixtures are set up once. Each case has a `tmp_path` and a `monkeypatch` of its
    own, and none is left out where another fails.
    """
    arguments = [name.strip() for name in names.split(",")]

    def of_all(test: Callable[..., None]) -> Callable[..., None]:
        def every(**fixtures: Any) -> None:
            failed: list[BaseException] = []
            for number, case in enumerate(cases):
                given = fixtures | dict(zip(arguments, case if len(arguments) > 1 else (case,), strict=True))
                if "tmp_path" in given:
                    given["tmp_path"] = given["tmp_path"] / f"{arguments[0]}-{number}"
                    given["tmp_path"].mkdir()
                try:
                    with pytest.MonkeyPatch.context() as patch:
                        if "monkeypatch" in given:
                            given["monkeypatch"] = patch
                        test(**given)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"case {number} of {names}: {case!r:.300}")
                    failed.append(error)
            if len(failed) > 1:
                raise BaseExceptionGroup(f"{len(failed)} of {len(cases)} cases of {test.__name__}", failed)
            if failed:
                raise failed[0]

        known = inspect.signature(test)
        kept = [parameter for name, parameter in known.parameters.items() if name not in arguments]
        every.__signature__ = known.replace(parameters=kept)  # type: ignore[attr-defined]
        every.__name__, every.__doc__, every.__module__ = test.__name__, test.__doc__, test.__module__
        every.pytestmark = getattr(test, "pytestmark", [])  # type: ignore[attr-defined]
        return every

    assert cases, f"no case of {names}"
    return of_all
