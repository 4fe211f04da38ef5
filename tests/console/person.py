"""What a person does in many tests."""

WHO = "grace"


def said_last(visitor):
    """The newest row of the history of what people said."""
    visitor.open("/control")
    return visitor.rows("table:has(th:text('More'))")[0]


def named(visitor):
    """Give this browser's person the name."""
    page = visitor.open("/who")
    page.get_by_label("Name").fill(WHO)
    page.get_by_role("button", name="Act under this name").click()
    page.wait_for_url("**/chain")
