"""Quiet hours: when a route's notifications wait, by event time."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field

from jobs.notifier.declared import Declared

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
LONGEST = timedelta(days=7)  # shorter than the topic `notifications` keeps what waits
SECOND = 10**9


def _clock(text: Any) -> Any:
    """A time of day; YAML reads 22:30 without quotes as a number to the base of 60."""
    if isinstance(text, int) and 0 <= text < 24 * 60:
        return time(*divmod(text, 60))
    try:
        return datetime.strptime(str(text), "%H:%M").time()
    except ValueError:
        raise ValueError('write a time of day as "22:30"') from None


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("no such time zone; write one as Europe/Stockholm") from None
    return name


Clock = Annotated[time, BeforeValidator(_clock)]


class Quiet(Declared):
    """A time of day on some days of the week. If it ends before it begins, or at once, it ends on the next day."""

    begin: Clock = Field(alias="from")
    end: Clock = Field(alias="to")
    days: tuple[Day, ...] = Field(default=DAYS, min_length=1)  # on which it begins
    zone: Annotated[str, AfterValidator(_known_zone)] = "UTC"

    def end_of(self, moment: datetime) -> datetime:
        """When the quiet hours that `moment` falls into are over; `moment` itself if it falls into none."""
        today = moment.astimezone(ZoneInfo(self.zone)).date()
        # Those of yesterday may reach into today.
        for day in (today - timedelta(days=1), today):
            begin, end = self._on(day)
            if DAYS[day.weekday()] in self.days and begin <= moment < end:
                return end
        return moment

    def _on(self, day: date) -> tuple[datetime, datetime]:
        zone = ZoneInfo(self.zone)
        last = day if self.end > self.begin else day + timedelta(days=1)
        begin, end = datetime.combine(day, self.begin, zone), datetime.combine(last, self.end, zone)
        return begin.astimezone(UTC), end.astimezone(UTC)


def hold_until(quiet: tuple[Quiet, ...], time_unix_nano: int) -> int:
    """The first time, ns, from `time_unix_nano` on that is in no quiet hours.

    Raises ValueError if there is none within a week.
    """
    began = moment = datetime.fromtimestamp(time_unix_nano // SECOND, UTC)
    while (later := max((one.end_of(moment) for one in quiet), default=moment)) > moment:
        moment = later
        if moment - began > LONGEST:
            raise ValueError("quiet hours leave no time in a week at which anything is sent")
    return time_unix_nano if moment == began else int(moment.timestamp()) * SECOND
