"""Which of Spark's settings authenticate and encrypt what driver and executors say to each other, and their files."""

from collections.abc import Mapping

SECRET = "spark.authenticate.secret"
ENCRYPTED = "spark.network.crypto.enabled"
_SECURED = {
    "spark.authenticate": "true",
    ENCRYPTED: "true",
    "spark.io.encryption.enabled": "true",
}
# Where Spark creates the secret that driver and executors share, and hands it over by itself.
_WITH_SECRET = ("yarn", "k8s:")


class NoSecret(ValueError):
    """The master cannot hand a secret over."""


def secured_channels(master: str, conf: Mapping[str, str], is_wanted: bool | None) -> dict[str, str]:
    """`is_wanted`: None for where it needs nothing of the user and leases leave this machine. Raises NoSecret."""
    if is_wanted is False:
        return {}
    if master.startswith("local"):
        return dict(_SECURED) if is_wanted else {}
    if master.startswith(_WITH_SECRET) or SECRET in conf:
        return dict(_SECURED)
    if is_wanted and conf.get("spark.authenticate") != "true":
        raise NoSecret(
            f"heliograph.spark.secure: the master {master} does not hand out secrets: set spark.authenticate and "
            f"{SECRET} in spark-defaults.conf of the master, the workers and the driver, and spark.authenticate=true "
            "with --conf"
        )
    return dict(_SECURED) if is_wanted else {}
