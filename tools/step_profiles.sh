#!/usr/bin/env bash
# step_profiles.sh - times training steps op by op, beside the least time that each op needs, a JSON line each, for
# tools/steps_table.awk. Takes five minutes on an otherwise idle machine.
#
#     tools/step_profiles.sh > results/baseline/steps.jsonl
set -euo pipefail
lrnn=${LRNN:-./lrnn}

step() { "$lrnn" perf step "$@" --profile yes --json; }

# BD-LRU as tests/peers/steps.py trains it.
for threads in 1 2; do
    for precision in fp32 bf16; do
        step bdlru:m=5,blocks=16 --mlp gelu --dim 64 --precision $precision --threads $threads
        step bdlru:m=5,blocks=64 --mlp gelu --dim 128 --precision $precision --threads $threads
        step bdlru:m=5,blocks=64 --mlp gelu --dim 256 --layers 2 --precision $precision --threads $threads
    done
done
# Two runs side by side, each with one thread; "beside" marks their lines.
pids=()
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for one in 1 2; do
    step bdlru:m=5,blocks=64 --mlp gelu --dim 256 --layers 2 --threads 1 >"$folder/$one" &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
sed 's/^{/{"beside":1,/' "$folder"/*
# BD-LRU with the same number of parameters at every block size.
for cut in blocks=640,m=1 blocks=256,m=2 blocks=142,m=3 blocks=91,m=4; do
    step bdlru:$cut --mlp gelu --dim 128 --threads 1
done
# Single layers at 64 and at 512 tokens.
for length in 64 512; do
    for model in lstm attention mamba2 deltanet deltaproduct mlstm plstm gated-deltanet kda gdn2 rwkv7 gla hgrn2 pdssm \
        s5 linoss aussm rglru mingru; do
        step $model --mlp none --dim 128 --batch 32 --length $length --vocab 2 --threads 1 --steps 10
    done
done
# Steps of 8 192 tokens.
for length in 64 512; do
    for model in slstm mamba3; do
        step $model --dim 128 --batch $((8192 / length)) --length $length --vocab 2 --threads 1 --steps 10
    done
done
# A tree of 784 leaves, batches of 64 graphs beside as many tokens of sequences, pLSTM-Vis tiny on images of 192 x 192
# in patches of 16, and strings of 3 to 40 tokens as SLiCE's authors have them.
step myosotis --mlp none --dim 128 --batch 32 --length 784 --vocab 2 --threads 1 --steps 10
step plstm-graph --mlp none --dim 128 --batch 64 --length 32 --vocab 16 --threads 1 --steps 10
step plstm --mlp none --dim 128 --batch 64 --length 32 --vocab 16 --threads 1 --steps 10
step plstm2d:heads=3,mode=PD,form=ref,gates=sliced --backbone vision --mlp gelu --dim 192 --layers 12 --length 144 \
    --batch 4 --vocab 2 --threads 1 --steps 10
step slice --backbone slice --dim 128 --batch 256 --length 40 --min-length 3 --vocab 6 --threads 1 --steps 10
