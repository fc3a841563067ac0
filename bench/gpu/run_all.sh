#!/bin/bash
# The GPU proof in one go: bench/gpu/run_all.sh [OUT] [LANE...]
# Needs a GPU, TensorRT, and Python with tensortriage's requirements. TRIAGE_TRT_PYTHON names the Python that has TensorRT
# when that is another one. Lanes run at the same time; each is a list of steps joined by commas.
set -uo pipefail
cd "$(dirname "$0")/../.."
out="${1:-/tmp/triage-gpu}"; shift || true
lanes=("$@")
[ ${#lanes[@]} -gt 0 ] || lanes=(conformance,small,plan,crash transformer,builds pinned,overflow,reduce guilty resnet50)
export PYTHONPATH="$PWD/src:$PWD/worker${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
mkdir -p "$out"
[ -d "$out/nets" ] || python3 bench/networks "$out/nets" gpu
python3 - "$out/about.json" <<'PY'
import json, os, platform, subprocess, sys
def told(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=60).stdout.strip()
    except OSError:
        return ""
python = os.environ.get("TRIAGE_TRT_PYTHON", sys.executable)
about = {
    "GPU": told("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
    "TensorRT": told(python, "-c", "import tensorrt; print(tensorrt.__version__)"),
    "Python": platform.python_version() + ", TensorRT behind " + told(python, "-c", "import platform; print(platform.python_version())"),
    "CPU cores": os.cpu_count(),
}
json.dump(about, open(sys.argv[1], "w"))
PY
for lane in "${lanes[@]}"; do
  python3 bench/gpu/steps.py "$out" ${lane//,/ } 2>&1 | sed "s/^/[${lane%%,*}] /" &
done
wait
python3 bench/gpu/render.py "$out"
