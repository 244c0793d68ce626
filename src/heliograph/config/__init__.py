"""Files in, one typed model out, with the line every value came from.

`load` reads an `mm2.properties` and answers with a `Deployment`, or raises a `ConfigError` that names file, line and
key. Settings are declared once (see `setting`); this package talks to no cluster and prints nothing.
"""

from heliograph.config.deployment import Deployment, load
from heliograph.config.notices import ConfigError, Notice

__all__ = ["ConfigError", "Deployment", "Notice", "load"]
