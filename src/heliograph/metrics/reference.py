"""`python -m heliograph.metrics.reference` prints docs/metrics.md."""

import sys
from collections.abc import Iterable

from heliograph.metrics import definitions as of
from heliograph.metrics.bounds import MOST_GROUPS, MOST_PARTITIONS, MOST_TOPICS

_TOP = f"""# Metrics

Made by `make docs` from `src/heliograph/metrics/definitions.py`.

`GET /metrics` on the REST address of `heliograph run` and `heliograph serve` answers in Prometheus' text format.
Everything is read from what runs at the moment of asking; nothing is counted for metrics alone. Rules, dashboards, and
how to start Prometheus with them: [deploy/monitoring](../deploy/monitoring/README.md).

## How many series

| asked for | series of topics | MM2's series | our series of partitions |
| --- | --- | --- | --- |
| `/metrics` | all, up to {MOST_TOPICS}; else none | per partition, up to {MOST_PARTITIONS}; else per topic | none |
| `/metrics?detail=flow` | none | none | none |
| `/metrics?detail=topic` | all | per topic | none |
| `/metrics?detail=partition` | all | per partition | all |

The bounds are for the whole process. MM2's series that stand for a whole topic have `partition="all"`. A flow costs
about 110 series, a task of it 11, a topic {len(of.OF_TOPIC)}, a partition up to {len(of.MM2) - 3}.
A group with checkpoints costs 3 for each of its partitions; where those are more than {MOST_GROUPS}, 3 for each group,
with `topic="all"`; and none above {MOST_GROUPS} groups. Reasons, kinds, states and levels are short fixed lists.
`heliograph_topics_left_out` tells how many topics have no series of their own.

Counters begin at nothing when the process starts; those of a flow also when it is resumed or gets other addresses, and
those of what is kept in sync besides records when a setting of it changes.

## What is not there

- `record_age_ms` is not measured apart: see below.
- Of Connect: offset commits, how long a rebalance takes, retries and failures of the dead-letter queue, metrics of
  producers and consumers but for the lag. Heliograph has no such parts, or tries until it succeeds. What they are
  watched for is in `heliograph_flow_state`, `heliograph_partitions`, `heliograph_refusals` and
  `heliograph_notices_total`.
- A latency exists where records have times. Times ahead of this machine's clock count as 0; records from the past
  make a great one, as with MM2.
- The lag and the retention margin of a partition that is stopped, waiting or paused are as of when it was last read:
  where the source begins and ends is learnt by reading.
"""


def page() -> str:
    return "\n".join(
        [
            _TOP,
            *_table("Heliograph's own: the process", of.OF_PROCESS),
            *_table("Heliograph's own: flows", of.OF_FLOW),
            *_table("Heliograph's own: topics", of.OF_TOPIC),
            *_table("Heliograph's own: partitions, with `detail=partition`", of.OF_PARTITION),
            "Also `process_*`: CPU, memory, open files and start time of the driver, from prometheus-client.\n",
            *_table("MirrorMaker 2's", of.MM2),
            "`topic` is the mirror's name, as with MM2, but for the lag, which MM2's consumer has by the source's. "
            "`source` is there as since Kafka 4.0.\n",
            *_table("Kafka Connect's", of.CONNECT),
        ]
    )


def _table(title: str, metrics: Iterable[of.Metric]) -> list[str]:
    rows = [
        f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.meaning} |"
        for metric in metrics
    ]
    return [f"## {title}\n", "| name | type | labels | meaning |", "| --- | --- | --- | --- |", *rows, ""]


if __name__ == "__main__":
    sys.stdout.write(page())
