"""The command `heliograph`, also as `python -m heliograph`."""

import sys

from heliograph.engine import spark_ahead


def main() -> None:
    try:
        spark_ahead.start_for(sys.argv[1:])
        from heliograph import cli  # takes a moment, while Spark's JVM starts

        cli.main()
    finally:
        spark_ahead.end()


if __name__ == "__main__":
    main()
