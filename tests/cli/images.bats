#!/usr/bin/env bats
# Decoding, encoding and resizing against PIL and netpbm, an independent decoder
# and resampler. The pictures are drawn at test time.
load ../helper/common

export HELPER=$BUILD/tests/helper/picture

pil() {
    python "$ROOT/tests/helper/images.py" "$@"
}

@test "JPEG: baseline and progressive, RGB, gray and CMYK, as PIL decodes them, to the bit" {
    pil jpeg
}

@test "JPEG at 1/2, 1/4 and 1/8 as PIL's draft decodes it, to the bit" {
    pil scaled
}

@test "EXIF orientations 1 to 8 as PIL turns them" {
    pil exif
}

@test "PNG: colour types and transparency on white as PIL composes them" {
    pil png
}

@test "PNG, JPEG and PNM that we write are read by PIL" {
    pil encode
}

@test "resize: bilinear and Lanczos as PIL, area as the exact mean, within a level" {
    pil resize
}

@test "resize: a part of the whole as PIL crops it" {
    pil part
}

@test "resize in floats as PIL" {
    pil floats
}

@test "resize gives the same bytes on every family of processors" {
    pamgradient black red blue white 150 90 | pamtopnm >in.ppm
    for filter in area bilinear lanczos; do
        for level in ref avx2 avx512; do
            ADAM_CPU=$level "$HELPER" resize $filter 67 41 <in.ppm | cksum
        done | uniq | wc -l >kinds
        [ "$(cat kinds)" -eq 1 ]
    done
}

@test "PNM: raw and plain, of every maxval, as netpbm writes them" {
    pamgradient black red blue white 31 17 | pamtopnm >raw.ppm
    for maxval in 1 7 255 1000 65535; do
        pamdepth $maxval raw.ppm 2>/dev/null | tee depth.ppm | pamdepth 255 2>/dev/null >wanted.ppm
        "$HELPER" decode <depth.ppm >got.ppm
        cmp got.ppm wanted.ppm
        pnmtoplainpnm depth.ppm | "$HELPER" decode | cmp - wanted.ppm
    done
    ppmtopgm raw.ppm | pamditherbw -threshold | pamtopnm >bits.pbm
    "$HELPER" decode <bits.pbm >got.pgm
    pamdepth 255 bits.pbm 2>/dev/null | pamtopnm | pgmtopgm | cmp - got.pgm
    pnmtoplainpnm bits.pbm | "$HELPER" decode | cmp - got.pgm
}

@test "a damaged JPEG is refused in one line, and libjpeg says nothing itself" {
    pamgradient black red blue white 90 70 | pamtopnm | "$HELPER" encode jpg 80 >whole.jpg
    head -c 600 whole.jpg >cut.jpg
    run_status 65 "$HELPER" decode <cut.jpg
    [ -z "$output" ]
    [ "$stderr" = "truncated JPEG" ]
    (head -c 700 whole.jpg; printf '\377\331') >ended.jpg
    run_status 65 "$HELPER" decode <ended.jpg
    [ "$stderr" = "JPEG: premature end of data segment" ]
}

@test "photographs decode as PIL decodes them, to the bit, and resize within a level" {
    adam_data imagenet-sample
    pil photographs "$data"
}
