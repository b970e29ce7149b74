#!/bin/sh
# Nets of torchvision with random weights, exported by PyTorch and read by adam-ctl import: how far
# their outputs are apart on pictures of 224x224. Ends with status 1 above 1e-4.
#
#   onnx.sh [NET...]    resnet18 mobilenet_v2 alexnet vgg11
#   ONNX_SIZE   height and width of the pictures (224)
#   ONNX_OPSET  operator set (13)
set -eu

helper=$(cd "$(dirname "$0")/../helper" && pwd)
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import torch, torchvision' 2>/dev/null; then
    echo "skipped: torchvision is missing"
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -eq 0 ]; then set -- resnet18 mobilenet_v2 alexnet vgg11; fi

printf 'net\tdifference\n'
for net; do
    folder=$work/$net
    mkdir "$folder"
    "$python" "$helper/onnx_nets.py" "$net" "${ONNX_OPSET:-13}" "$folder" "${ONNX_SIZE:-224}"
    adam-ctl import "$folder/net.onnx" -o "$folder/run"
    adam-eval -q --model "$folder/run" --data "$folder/pictures.npy" \
        --labels "$folder/labels.npy" --per-sample "$folder/scores.tsv" >"$folder/figures"
    difference=$("$python" "$helper/onnx_scores.py" "$folder" "$folder/scores.tsv" 1e-4)
    printf '%s\t%s\n' "$net" "$difference"
    rm -rf "$folder"
done
