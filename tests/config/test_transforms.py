"""Transforms are not applied, so a file that relies on them is refused, in every format, unless it says otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heliograph.config import ConfigError, load
from heliograph.config.resolve.posted import connector, flow_of
from heliograph.config.show.plugin_definitions import problems
from heliograph.model.flow import CHECKPOINT, SOURCE

from .files import MINIMAL, deployment, flow, notes, warnings

CONNECTOR = {
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
    "transforms": "mask, route",
    "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
}
RESOURCE = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
spec:
  target: {alias: B, bootstrapServers: "b:9092"}
  mirrors:
    - source: {alias: A, bootstrapServers: "a:9092"}
      sourceConnector:
        config:
          transforms: mask
"""


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        deployment(MINIMAL + text)
    return str(raised.value)


@pytest.mark.parametrize(
    ("added", "says"),
    [
        (
            "A->B.transforms = mask\nA->B.transforms.mask.type = x\n",
            "mm2.properties:5: A->B.transforms: 'mask' cannot be applied: records would be copied with all that it "
            "masks or drops. Remove it, or set A->B.heliograph.ignore.transforms = true to copy records as they are",
        ),
        ("transforms = mask\n", "mm2.properties:5: transforms: 'mask' cannot be applied"),
        ("transforms = mask\nheliograph.ignore.transforms = false\n", "set heliograph.ignore.transforms = true"),
    ],
)
def test_transforms_of_a_flow_are_refused(added: str, says: str) -> None:
    assert says in refused(added)


@pytest.mark.parametrize(
    "added",
    [
        "transforms =\n",
        "transforms = ,\n",
        "transforms = mask\nA->B.transforms =\n",
        "B->A.transforms = mask\n",
        "A->B.transforms = mask\nA->B.heliograph.parts = checkpoint\n",
    ],
)
def test_a_flow_that_copies_without_transforms_runs(added: str) -> None:
    assert flow(added).name == "A->B"
    assert not [text for text in warnings(added) if "transforms" in text]


def test_predicates_alone_change_nothing() -> None:
    added = "A->B.predicates = p\nA->B.predicates.p.type = x\n"
    assert warnings(added) == []
    assert len(notes(added)) == 2


def test_transforms_may_be_ignored_with_a_warning() -> None:
    added = "transforms = mask\nA->B.heliograph.ignore.transforms = true\n"
    assert warnings(added) == [
        "mm2.properties:5: transforms: 'mask' is not applied, and records are copied as they are: "
        "heliograph.ignore.transforms is true"
    ]


def test_transforms_of_a_connector_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "source.json"
    file.write_text(json.dumps({"name": "s", "config": CONNECTOR}, indent=1))
    with pytest.raises(ConfigError) as raised:
        load(file)
    assert f"{file}:9: connector s: transforms: 'mask, route' cannot be applied" in str(raised.value)
    assert "set heliograph.ignore.transforms = true" in str(raised.value)
    file.write_text(json.dumps({"name": "s", "config": CONNECTOR | {"heliograph.ignore.transforms": True}}))
    (warning,) = load(file).warnings
    assert "transforms: 'mask, route' is not applied" in warning.text


def test_transforms_of_other_connectors_concern_no_records(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.json"
    file.write_text(json.dumps(CONNECTOR | {"connector.class": "MirrorCheckpointConnector"}))
    assert load(file).flows


def test_transforms_of_a_resource_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "mirror.yaml"
    file.write_text(RESOURCE)
    with pytest.raises(ConfigError) as raised:
        load(file)
    path = "spec.mirrors[0].sourceConnector.config"
    assert f"{file}:9: {path}.transforms: 'mask' cannot be applied" in str(raised.value)
    assert f"set {path}.heliograph.ignore.transforms = true" in str(raised.value)


def test_transforms_of_a_posted_connector_are_refused() -> None:
    with pytest.raises(ConfigError) as raised:
        flow_of([connector("s", CONNECTOR)], {}, None)
    assert str(raised.value).startswith("connector s: transforms: 'mask, route' cannot be applied")
    config = CONNECTOR | {"name": "s"}
    (text,) = problems(SOURCE, config)["transforms"]
    assert text.startswith("transforms: 'mask, route' cannot be applied")
    assert problems(SOURCE, config | {"heliograph.ignore.transforms": "true"}) == {}
    assert problems(CHECKPOINT, config) == {}
    made = flow_of([connector("s", CONNECTOR | {"heliograph.ignore.transforms": "true"})], {}, None)
    assert made.flow is not None
    assert "'mask, route' is not applied" in made.warnings[0]
