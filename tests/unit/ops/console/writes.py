"""Notes down what the console would write, and who said it."""

from infra.errors import UserError
from ops.redrive import Redriven


class FakeWrites:
    """What was done, in order."""

    def __init__(self):
        self.done = []
        self.refusal = None

    def _note(self, *what):
        if self.refusal:
            raise UserError(self.refusal)
        self.done.append(what)

    def feedback(self, novelty, started_ms, by):
        self._note("feedback", novelty, started_ms, by)
        return "vm-1"

    def reset(self, series, machine, by):
        self._note("reset", series, machine, by)

    def suppress(self, rule, by):
        self._note("suppress", rule.model_dump(exclude_none=True), by)

    def allow(self, rule_id, by):
        self._note("allow", rule_id, by)

    def retire(self, machine, by):
        self._note("retire", machine, by)

    runs_processes = True

    def command(self, arguments, by):
        self._note("command", *arguments, by)
        return f"kappa {' '.join(arguments)}"

    def retry(self, ids, wanted):
        self._note("retry", tuple(ids), wanted)
        return Redriven(len(ids), 0, 0)


def post(browser, action, on="/control", **fields):
    """Post a form as the page `on` has it: with its token."""
    page = browser.get(on).text
    token = page.partition('name="csrf" value="')[2].partition('"')[0]
    return browser.post(f"/act/{action}", data={"csrf": token, "back": on, **fields}, follow_redirects=False)
