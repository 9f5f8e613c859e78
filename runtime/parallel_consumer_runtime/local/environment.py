"""Pure: `spec.env` becomes a member's environment, as a kubelet would make it, without a cluster to read from."""

import re
from collections.abc import Mapping, Sequence

from parallel_consumer_runtime.settings import LIVE_ENV, POD_NAME_ENV, PORT_ENV, STATIC_ENV, JsonObject

_RESERVED = {STATIC_ENV, LIVE_ENV, PORT_ENV, POD_NAME_ENV}
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")


def render_env(env: Sequence[JsonObject], shell: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables, and one line per problem that begins with the field's path.

    `$(NAME)` stands for an earlier variable of the list, `$$` for a dollar sign. What a pod would take from a Secret or a
    ConfigMap (`valueFrom`) is taken from the variable of the same name in `shell`.
    """
    rendered: dict[str, str] = {}
    problems: list[str] = []
    for place, variable in enumerate(env):
        path = f"spec.env[{place}]"
        name, value = variable.get("name"), variable.get("value", "")
        if not isinstance(name, str) or not name or "=" in name:
            problems.append(f"{path}.name: is required, without an equals sign; add it")
        elif name in _RESERVED:
            problems.append(f"{path}.name: {name} is set by the runtime; choose another")
        elif name in rendered:
            problems.append(f"{path}.name: {name} is there twice; remove one")
        elif "valueFrom" in variable:
            if name not in shell:
                problems.append(f"{path}.valueFrom: there is no cluster to read it from; set {name} in this shell")
            rendered[name] = shell.get(name, "")
        elif not isinstance(value, str):
            problems.append(f"{path}.value: must be a string; put it into quotes")
        else:
            rendered[name] = _expand(value, rendered)
    return rendered, problems


def _expand(value: str, known: Mapping[str, str]) -> str:
    def replace(found: re.Match[str]) -> str:
        name: str | None = found[1]
        return "$" if name is None else known.get(name, found[0])

    return _REFERENCE.sub(replace, value)
