"""Files in, one typed model out, with the line every value came from.

`load` reads a file (`mm2.properties`, connectors as JSON, Strimzi's YAML), `load_all` several; they answer with a
`Deployment`, or raise a `ConfigError` that names file, line and key. Settings are declared once (see `setting`); this
package talks to no cluster and prints nothing.
"""

from heliograph.config.messages import ConfigError, ConfigNotice
from heliograph.config.resolve.deployment import Deployment, load, load_all

__all__ = ["ConfigError", "ConfigNotice", "Deployment", "load", "load_all"]
