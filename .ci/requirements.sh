#!/bin/bash
# Export the images' requirements from uv.lock, with hashes.
set -euo pipefail
cd "$(dirname "$0")/.."
for part in runtime operator; do
  .venv/bin/uv export --quiet --frozen --no-default-groups --extra "$part" --no-emit-project --no-header --no-annotate --output-file "$part/requirements.txt"
done
