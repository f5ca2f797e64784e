"""Sessions that name stages and work counts by their old names."""

import sqlite3
from pathlib import Path

from profiler.analysis.breakdown import breakdown
from profiler.session.format import rows as renamed
from profiler.session.reader import Session

OLD = Path(__file__).parents[1] / "data" / "sessions" / "v1-old-names.asrs"


def test_stages_of_an_old_session_carry_todays_names() -> None:
    with sqlite3.connect(OLD) as file:
        written = {name for (name,) in file.execute("SELECT name FROM stage")}
    assert written & set(renamed.STAGES), "the kept session was written with old names"
    with Session.open(OLD) as session:
        names = {stage.name for stage in session.stages.values()}
        rows = {row.name: row for row in breakdown(session).stages}
    assert names == {renamed.STAGES.get(name, name) for name in written}
    active = rows["search.active"]
    assert active.work["active"] > 0
    assert "asked" not in active.work


def test_only_the_stage_that_meant_it_has_its_counts_renamed() -> None:
    assert renamed.named_now("search.ask", ("asked",)) == ("search.active", ("active",))
    assert renamed.named_now("score.other", ("asked",)) == ("score.other", ("asked",))
