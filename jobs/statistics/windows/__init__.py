"""The kinds of windows that can be declared. A new kind is a module beside these, and its name in this union."""

from typing import Annotated, get_args

from pydantic import Field

from jobs.statistics.windows.count import Count
from jobs.statistics.windows.session import Session
from jobs.statistics.windows.sliding import Sliding
from jobs.statistics.windows.sliding_count import SlidingCount
from jobs.statistics.windows.tumbling import Tumbling

AnyWindow = Annotated[Tumbling | Sliding | Session | Count | SlidingCount, Field(discriminator="kind")]
KINDS = {get_args(kind.model_fields["kind"].annotation)[0]: kind for kind in get_args(get_args(AnyWindow)[0])}
