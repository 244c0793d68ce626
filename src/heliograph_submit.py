"""The script to give to spark-submit: `spark-submit heliograph_submit.py run mm2.properties`.

It is beside the package and not in it, because spark-submit puts a script's directory on the path, where our `copy`
would hide Python's own.
"""

from heliograph.cli import main

main()
