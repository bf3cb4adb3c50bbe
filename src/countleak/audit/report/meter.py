"""The picture of a leak meter: the people pinned after each query of a log."""

from pathlib import Path

from countleak.audit.query_log import LogAudit
from countleak.audit.report.drawing import RECOVERED, altair, save

WIDTH, HEIGHT = 460, 260


def draw_meter(result: LogAudit, path: Path) -> None:
    """Draw how many people are pinned after each query, a line per account."""
    alt = altair()
    points = []
    for account in result.accounts:
        name = account.user if account.user is not None else "all users"
        ends = [(0, 0), *account.curve, (result.statements, account.pinned)]
        points += [{"query": query, "people": people, "account": name} for query, people in ends]
    several = len(result.accounts) > 1
    colour = alt.Color("account:N", title="user") if several else alt.value(RECOVERED)
    chart = (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, interpolate="step-after")
        .encode(
            x=alt.X("query:Q", title="queries of the log", axis=alt.Axis(grid=False)),
            y=alt.Y("people:Q", title="people pinned", axis=alt.Axis(tickMinStep=1)),
            color=colour,
        )
        .properties(
            width=WIDTH,
            height=HEIGHT,
            title=alt.TitleParams(
                f"{result.found:,} alarms in {result.counted:,} queries",
                subtitle=f"groups of up to {result.small} of {result.rows:,} people",
                anchor="start",
            ),
        )
    )
    save(chart.configure_view(stroke=None).configure_axis(labelColor="#444"), path)
