#!/bin/sh
# Writes the model of a residual net for pictures of 32x32, of 6 N + 2 layers (He 2015, 4.2):
#
#   examples/resnet.sh [N [CLASSES [NORM]]] >resnet20.net
#
# N is 3, and CLASSES 10, unless given. NORM is "batchnorm", as in the paper, or another that needs
# no more than its maps, as "groupnorm groups=8".
#
# This is how to write a model of many alike layers: a loop of the shell prints their lines.
set -eu

n=${1:-3} classes=${2:-10} norm=${3:-batchnorm}
kind=${norm%% *}
keys=${norm#"$kind"}

# Two convolutions, and what they read is added to what they make of it. Where the picture becomes
# smaller, a convolution of 1x1 brings it to the same shape.
block() { # NAME FROM MAPS STRIDE
    shortcut=$2
    echo
    echo "conv      $1-1 maps=$3 kernel=3 stride=$4 pad=1 from=$2"
    echo "$kind $1-m$keys act=relu"
    echo "conv      $1-2 maps=$3 kernel=3 pad=1"
    echo "$kind $1-n$keys"
    if [ "$4" -gt 1 ]; then
        shortcut=$1-s
        echo "conv      $1-s maps=$3 kernel=1 stride=$4 from=$2"
    fi
    echo "add       $1   from=$1-n,$shortcut act=relu"
}

echo "input     3x32x32 ops='scale 1/255; mean 0.49,0.48,0.45; std 0.25,0.24,0.26'"
echo "conv           maps=16 kernel=3 pad=1"
echo "$kind b0$keys act=relu"
last=b0 number=0
for maps in 16 32 64; do
    i=0
    while [ "$i" -lt "$n" ]; do
        number=$((number + 1)) stride=1
        if [ "$i" = 0 ] && [ "$maps" -gt 16 ]; then stride=2; fi
        block "b$number" "$last" "$maps" "$stride"
        last=b$number i=$((i + 1))
    done
done
echo
echo "avgpool   size=all"
echo "softmax   units=$classes"
