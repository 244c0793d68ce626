"""When Spark's channels are authenticated and encrypted."""

import pytest

from heliograph.engine.secured_channels import NoSecret, secured_channels


@pytest.mark.parametrize(
    ("master", "conf", "wanted", "secured"),
    [
        ("local[2]", {}, None, False),
        ("local[2]", {}, True, True),
        ("yarn", {}, None, True),
        ("yarn", {}, False, False),
        ("k8s://https://api:6443", {}, None, True),
        ("spark://host:7077", {}, None, False),
        ("spark://host:7077", {"spark.authenticate.secret": "x"}, None, True),
        ("spark://host:7077", {"spark.authenticate": "true"}, True, True),
        ("spark://host:7077", {"spark.authenticate.secret": "x"}, False, False),
    ],
)
def test_where_channels_are_secured(master: str, conf: dict[str, str], wanted: bool | None, secured: bool) -> None:
    assert ("spark.network.crypto.enabled" in secured_channels(master, conf, wanted)) is secured


def test_a_standalone_master_has_no_secret_of_its_own() -> None:
    with pytest.raises(NoSecret, match=r"spark-defaults\.conf"):
        secured_channels("spark://host:7077", {}, True)
