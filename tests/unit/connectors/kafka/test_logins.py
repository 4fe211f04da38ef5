import gc
import subprocess
import sys

import pytest

from connectors.kafka.logins import Logins

OLD = {"bootstrap.servers": "b-1:9093", "sasl.username": "detector", "sasl.password": "old"}
NEW = ("detector", "new")


class Client:
    def __init__(self):
        self.logins = []

    def set_sasl_credentials(self, *login):
        self.logins.append(login)


@pytest.fixture
def logins():
    """With the present login of `detector` in `now`, which a test may change."""
    logins = Logins()
    logins.now = ("detector", "old")
    logins.found_by(lambda: logins.now)
    return logins


def test_a_new_client_gets_the_present_password(logins):
    assert logins.present(OLD) == OLD
    logins.now = NEW
    assert logins.present(OLD) == {**OLD, "sasl.password": "new"}


@pytest.mark.parametrize("now", [None, ("archive", "another")])
def test_what_is_no_password_of_this_user_is_left_alone(logins, now):
    logins.now = now
    client = Client()
    logins.keep(client, ("detector", "old"))
    logins.renew()
    assert client.logins == []
    assert logins.present(OLD) == OLD
    assert logins.present({"bootstrap.servers": "b-1:9092"}) == {"bootstrap.servers": "b-1:9092"}


def test_each_client_is_told_of_a_change_once(logins):
    clients = [Client(), Client()]
    for client in clients:
        logins.keep(client, ("detector", "old"))
    logins.renew()
    logins.now = NEW
    logins.renew()
    logins.renew()
    assert [client.logins for client in clients] == [[NEW], [NEW]]


def test_a_client_that_is_closed_or_gone_is_not_told(logins):
    closed, gone = Client(), Client()
    logins.keep(closed, ("detector", "old"))
    logins.keep(gone, ("detector", "old"))
    logins.forget(closed)
    del gone
    gc.collect()
    logins.now = NEW
    logins.renew()
    assert closed.logins == []
    assert not [*logins._clients]


ENDS_WHILE_THE_PASSWORD_IS_READ = """
import sys, threading, time
from pydantic import BaseModel, field_validator
from connectors.kafka import logins

reads = threading.Event()

class Secrets(BaseModel):
    password: str

    @field_validator("password")
    def read(cls, value):
        reads.set()
        time.sleep(0.3)
        return value

class Client:
    pass

class Slow:
    def __del__(self, rest=time.sleep):
        rest(0.6)

sys.ps1 = Slow()  # what Python's end drops first: other threads go on meanwhile
logins.SECONDS = 0.01
logins.LOGINS.found_by(lambda: ("detector", Secrets(password="old").password))
client = Client()
logins.LOGINS.keep(client, ("detector", "old"))
reads.wait()
sys.exit(2)
"""


def test_a_process_ends_with_its_own_code_while_the_password_is_read():
    command = [sys.executable, "-c", ENDS_WHILE_THE_PASSWORD_IS_READ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (2, "")
