#!/bin/sh
# Seconds to 99.0% on MNIST, two threads, against PyTorch; see learns/reach.py --help.
# Needs MNIST's four IDX files in $ADAM_DATA/mnist.
exec "${PYTHON:-/usr/bin/python3}" "$(dirname "$0")/learns/reach.py" "$@"
