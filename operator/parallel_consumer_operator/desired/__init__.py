"""Pure: a spec becomes manifests. One module per child kind; no Kopf, no client, no clock."""

from parallel_consumer_operator.desired.children import Children, render_children
from parallel_consumer_operator.desired.naming import CONTAINER, Labels, config_map_name, selector_of

__all__ = ["CONTAINER", "Children", "Labels", "config_map_name", "render_children", "selector_of"]
