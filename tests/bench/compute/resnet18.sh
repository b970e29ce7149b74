#!/bin/sh
# Writes ResNet-18 for pictures of 224x224 (He 2015, table 1), as torchvision has it.
set -eu

conv() { # NAME FROM MAPS KERNEL STRIDE ACT
    echo "conv      $1 maps=$3 kernel=$4 stride=$5 pad=$(($4 / 2))${2:+ from=$2}"
    echo "batchnorm $1-n act=$6"
}

block() { # NAME FROM MAPS STRIDE
    shortcut=$2
    conv "$1-1" "$2" "$3" 3 "$4" relu
    conv "$1-2" "$1-1-n" "$3" 3 1 linear
    if [ "$4" -gt 1 ]; then
        shortcut=$1-s-n
        conv "$1-s" "$2" "$3" 1 "$4" linear
    fi
    echo "add       $1 from=$1-2-n,$shortcut act=relu"
}

echo "input     3x224x224 ops='scale 1/255'"
conv first "" 64 7 2 relu
echo "maxpool   b0 size=3 stride=2 pad=1"
number=0
for maps in 64 128 256 512; do
    for i in 1 2; do
        stride=$((i == 1 && maps > 64 ? 2 : 1))
        block "b$((number + 1))" "b$number" "$maps" "$stride"
        number=$((number + 1))
    done
done
echo "avgpool   size=all"
echo "softmax   units=1000"
