"""A complete failover on two clusters that it starts itself. docs/offsets.md shows its output.

A shop writes orders to the primary in transactions, some of which are aborted, and old orders are deleted there. A
consumer group reads some of them. Then the primary dies, and the group resumes on the standby: same topic, same group,
without translation of offsets.

    python examples/failover.py
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from heliograph.sandbox import ClusterSpec, Sandbox

ORDERS = TopicPartition("orders", 0)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_orders(servers: str, first: int, count: int, commit: bool) -> None:
    producer: Any = KafkaProducer(bootstrap_servers=servers, transactional_id="shop")
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(first, first + count):
        producer.send("orders", f"order {number}".encode(), partition=0)
    producer.flush()
    producer.commit_transaction() if commit else producer.abort_transaction()
    producer.close()


def read_orders(servers: str, group: str, most: int) -> list[str]:
    """Reads from the group's committed offset and commits, like any application."""
    consumer: Any = KafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=most,
    )
    consumer.subscribe(["orders"])
    records: list[Any] = []
    while not records:
        records = consumer.poll(timeout_ms=1000).get(ORDERS, [])
    consumer.commit()
    consumer.close()
    return [f"{record.value.decode()} at offset {record.offset}" for record in records[:most]]


def heliograph(*arguments: str) -> None:
    say(f"$ heliograph {' '.join(arguments[:-1])} standby.properties")
    done = subprocess.run([sys.executable, "-m", "heliograph", *arguments], capture_output=True, text=True, check=False)
    if done.stdout.strip():
        say(done.stdout.strip())
    if done.returncode:
        sys.exit(done.stderr or done.returncode)


def main() -> None:
    with Sandbox() as sandbox, tempfile.TemporaryDirectory() as folder:
        primary, standby = sandbox.start({"primary": ClusterSpec(), "standby": ClusterSpec()})
        file = Path(folder, "standby.properties")
        text = Path(__file__).with_name("standby.properties").read_text() + "\nreplication.factor = 1\n"
        for alias, servers in (("primary", primary.bootstrap), ("standby", standby.bootstrap)):
            text = re.sub(rf"(?m)^{alias}\.bootstrap\.servers = .*$", f"{alias}.bootstrap.servers = {servers}", text)
        file.write_text(text)

        admin: Any = KafkaAdminClient(bootstrap_servers=primary.bootstrap)
        admin.create_topics([NewTopic("orders", 1, 1)])
        for turn in range(30):
            write_orders(primary.bootstrap, turn * 10, 10, commit=turn % 5 != 4)
        admin.delete_records({ORDERS: 100})
        admin.close()
        say("# 300 orders in 30 transactions, of which 6 were aborted; those before offset 100 are deleted")
        read = read_orders(primary.bootstrap, "billing", 50)
        say(f"# billing has read 50 orders on the primary, from {read[0]} to {read[-1]}")
        heliograph("run", "--until-caught-up", str(file))
        heliograph("offsets", str(file))
        heliograph("groups", str(file))
        primary.kill_all()
        say("# the primary is gone; billing resumes on the standby")
        read = read_orders(standby.bootstrap, "billing", 1000)
        say(f"# and reads {len(read)} orders there, from {read[0]} to {read[-1]}")


if __name__ == "__main__":
    main()
