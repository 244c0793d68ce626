"""`heliograph run --clusters`: only the flows into some clusters, as MirrorMaker 2's command runs them."""

from pathlib import Path

import pytest

from heliograph.cli.clusters_option import aliases, one_value_each
from heliograph.config import ConfigError, Deployment, load
from heliograph.config.resolve.targets import into
from heliograph.service.cycles import cycle_of
from running.command import in_process

THREE = """clusters = A, B, C
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
A->B.enabled = true
B->A.enabled = true
A->C.enabled = true
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "mm2.properties"
    file.write_text(THREE)
    return file


def names(deployment: Deployment) -> tuple[list[str], list[str], list[str]]:
    """Of the flows that copy, that only write heartbeats, and that copy elsewhere."""
    flows = deployment.flows, deployment.heartbeat_only_flows, deployment.flows_elsewhere
    copying, heartbeats, elsewhere = ([flow.name for flow in kind] for kind in flows)
    return copying, heartbeats, elsewhere


def test_the_flows_into_a_cluster_are_left_with_those_that_only_write_heartbeats(file: Path) -> None:
    whole = load(file)
    assert names(into(whole, ["B"])) == (["A->B"], ["C->B"], ["A->C", "B->A"])
    assert names(into(whole, ["C", "A"])) == (["A->C", "B->A"], ["B->C", "C->A"], ["A->B"])
    assert into(whole, ()) == whole


def test_a_cluster_with_nothing_but_heartbeats_can_be_named(file: Path) -> None:
    file.write_text(THREE.replace("A->C.enabled = true\n", ""))
    assert names(into(load(file), ["C"])) == ([], ["A->C", "B->C"], ["A->B", "B->A"])


def test_a_cluster_without_any_flow_is_an_error(file: Path) -> None:
    file.write_text(THREE.replace("A->C.enabled = true\n", "emit.heartbeats.enabled = false\n"))
    with pytest.raises(ConfigError, match=r"No source->target replication flows into C: the file has flows into A, B"):
        into(load(file), ["C"])


@pytest.mark.parametrize(
    ("given", "error"),
    [("D", "D is no cluster of this file, which has A, B, C"), ("B,D,E", "D and E are no clusters of this file")],
)
def test_the_command_names_the_aliases_if_one_is_unknown(file: Path, given: str, error: str) -> None:
    done = in_process("run", file, "--clusters", given)
    assert done.exit_code == 2
    assert f"{file}: --clusters: {error}" in done.stderr.replace("\n", "")


def test_a_cycle_with_a_flow_of_another_process_is_found(file: Path) -> None:
    file.write_text(THREE + "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n")
    deployment = into(load(file), ["B"])
    (flow,) = deployment.flows
    assert cycle_of("t", flow, deployment.flows) == ()
    assert cycle_of("t", flow, (*deployment.flows, *deployment.flows_elsewhere)) == ("A->B", "B->A")


@pytest.mark.parametrize(
    ("given", "parsed"),
    [
        ("mm2.properties --clusters B", "mm2.properties --clusters B"),
        ("mm2.properties --clusters B C --plan", "mm2.properties --clusters B --clusters C --plan"),
        ("mm2.properties --clusters=B C", "mm2.properties --clusters=B --clusters C"),
        ("--clusters B C mm2.properties", "--clusters B --clusters C mm2.properties"),
        ("--clusters mm2.properties B", "--clusters mm2.properties --clusters B"),
        ("--plan mm2.properties B", "--plan mm2.properties B"),
    ],
)
def test_several_aliases_may_follow_one_option(
    given: str, parsed: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    assert list(one_value_each(given.split())) == parsed.split()


def test_aliases_may_be_separated_by_commas() -> None:
    assert aliases(["B,C", " B", ""]) == ("B", "C")
    assert aliases(None) == ()


def test_the_command_takes_aliases_as_mirrormaker_2_does(file: Path) -> None:
    done = in_process("run", file, "--clusters", "D", "E", "--plan")
    assert "D and E are no clusters" in done.stderr.replace("\n", " ")
