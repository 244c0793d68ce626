"""Small files for the tests: the two lines every file needs, then what the test is about."""

from __future__ import annotations

from heliograph.config import Deployment
from heliograph.config.read.mm2_file import from_properties
from heliograph.config.read.properties import parse
from heliograph.config.resolve.deployment import assemble
from heliograph.model.flow import Flow
from heliograph.model.names import Matches, NameFilter

FILE = "mm2.properties"
CLUSTERS = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
"""
# Lines 1 to 4; what a test adds begins at line 5.
MINIMAL = CLUSTERS + "A->B.enabled = true\n"


def deployment(text: str) -> Deployment:
    return assemble(from_properties(FILE, parse(text.encode("latin-1"), FILE)))


def flow(added: str = "") -> Flow:
    """The one flow A->B of the least file there is, with some lines added."""
    (only,) = deployment(MINIMAL + added).flows
    return only


def warnings(added: str) -> list[str]:
    return [str(notice) for notice in deployment(MINIMAL + added).warnings]


def notes(added: str) -> list[str]:
    return [str(notice) for notice in deployment(MINIMAL + added).notes]


def patterns(names: Matches) -> NameFilter:
    """A flow's filter where the test knows that it is the built-in one."""
    assert isinstance(names, NameFilter)
    return names
