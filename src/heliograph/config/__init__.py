"""From files to flows, with the line that every value comes from. A setting goes one way:

- `declare`: which settings there are, their kinds and defaults; those that are only explained are data.
- `read`: a file (`mm2.properties`, connectors as JSON, Strimzi's YAML) becomes `Settings`, whatever its format.
- `resolve`: settings become flows, with notices about mistakes. Posted connectors enter here, as settings.
- `show`: what commands and the REST API show: explanations, other formats, Connect's connectors, the reference page.

`load` raises a `ConfigError` with all errors of a file. This package connects to no cluster and prints nothing.
"""

from heliograph.config.messages import ConfigError, ConfigNotice
from heliograph.config.resolve.deployment import Deployment, load, load_all

__all__ = ["ConfigError", "ConfigNotice", "Deployment", "load", "load_all"]
