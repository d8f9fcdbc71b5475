/* profile.c - see profile.h. One block a suite. */
#include "harness/study/profiles/profile.h"

#include <stdio.h>
#include <string.h>

#include "core/label.h"

#define WORD_PROBLEM_MODELS                                                                                            \
    "bdlru:m=1 bdlru:m=2 bdlru:m=3 bdlru:m=4 bdlru:m=5 hlru:m=1 hlru:m=2 hlru:m=3 hlru:m=4 hlru:m=5 lstm lru"

#define MAD_MODELS                                                                                                     \
    "lstm bdlru:m=1 bdlru:m=2 bdlru:m=4 hlru:m=1 hlru:m=2 hlru:m=4 hlru:m=2,layout=observer hlru:m=4,layout=observer " \
    "mamba2 deltanet deltaproduct:steps=4 slice plstm attention"

/* The SLiCE paper's DeltaProduct has the output gate of its library's layer, which the short runs do without. */
#define REGULAR_MODELS(OUTGATE)                                                                                        \
    "bdlru:m=2 slice slice:structure=diagonal-dense,block=16 plstm:track=2 deltaproduct:steps=4,forget=yes" OUTGATE    \
    " lstm mamba2 mlstm"

/* About 1024 numbers of a transition matrix a channel: d, d*b, d^2, d(1+2r), d^2*keep: read off the configurations of
 * Benjamin-Walker/structured-linear-cdes. */
#define A5_MODELS                                                                                                      \
    "slice:block=8@dim=128 slice:structure=diagonal@dim=1024 slice:structure=hadamard@dim=1024 "                       \
    "slice:structure=dense@dim=32 slice:structure=dplr,rank=4@dim=112 slice:structure=sparse,keep=0.25@dim=64 "        \
    "lstm@dim=1024 mlstm@dim=1024 mamba2@dim=1024 deltaproduct:steps=4,forget=yes,outgate=yes@dim=1024"

/* A coupling of each node's own, as the paper associates them; in skew form, which is ours and needs no bound, where
 * the paper's is symmetric and diagonally dominant (dd). Couplings that a level shares cannot tell a node's subtrees
 * apart (docs/results.md has what that costs). Of images quad-trees. */
#define MYOSOTIS     "myosotis:form=skew,share=node"
#define MYOSOTIS_4   MYOSOTIS ",arity=4"
#define IMAGE_MODELS MYOSOTIS_4 " lru bdlru:m=2 mamba2 plstm plstm2d"

/* On patches: pLSTM in the net and the form that its authors train (ml-jku/plstm). */
#define PLSTM_VIS "backbone=vision,mlp=gelu,positions=learnt,clip=1"
#define PATCH_MODELS(POOL_OF_GRID, MORE_OF_PLSTM)                                                                      \
    MYOSOTIS_4 " lru bdlru:m=2 mamba2 plstm@" PLSTM_VIS MORE_OF_PLSTM " plstm2d:mode=PD,form=ref@pool=" POOL_OF_GRID   \
               "," PLSTM_VIS MORE_OF_PLSTM
#define IMAGE_SMOKE "myosotis:heads=4 lru:state=8 bdlru:m=2,blocks=8 plstm2d:heads=2"

/* S4's on sequential CIFAR (state-spaces/s4, configs), whose architecture S5's and Myosotis' are nearest to. */
#define IMAGE_PAPER(WARMUP)                                                                                            \
    "backbone=s5 dim=512 layers=6 batch=50 epochs=200 schedule=cosine warmup=" WARMUP " lr-min=0 decay=0.05 "          \
    "dropout=0.1 bidirectional=yes ssm-lr-factor=0.1"

/* S5's on MNIST; a warm-up of one epoch. */
#define MNIST_PAPER(TASK)                                                                                              \
    {                                                                                                                  \
        .suite = TASK, .name = "paper", .models = IMAGE_MODELS, .model_options = "", .task_options = "",               \
        .flags = "backbone=s5 dim=96 layers=4 batch=50 epochs=150 schedule=cosine warmup=1080 lr-min=0 decay=0.01 "    \
                 "dropout=0.1 bidirectional=yes ssm-lr-factor=0.25",                                                   \
        .rates = "0.008", .seeds = 1, .adapted = true,                                                                 \
        .note = "paper (S5's MNIST; Myosotis has S5's net and says nothing of training): 4 layers, width 96, batch "   \
                "50, 150 epochs, warm-up over\nthe first, cosine to 0, both directions, a quarter of the rate for "    \
                "dynamics and norms",                                                                                  \
    }

/* pLSTM-Vis as it is, in one mode alone and without positions, and a vision transformer, whose class token is the mean
 * of the patches here (ml-jku/plstm_experiments). */
#define ARROW_MODELS(HEADS, VIT_HEADS, NORM)                                                                           \
    "plstm2d:" HEADS ",mode=PD@pool=corners,positions=learnt plstm2d:" HEADS ",mode=P@pool=corners,positions=learnt "  \
    "plstm2d:" HEADS ",mode=D@pool=corners,positions=learnt plstm2d:" HEADS ",mode=PD@pool=corners "                   \
    "full-attention:heads=" VIT_HEADS "@norm=" NORM ",positions=learnt"
#define ARROW_GATES "form=ref,gates=sliced"
#define ARROW_NET   "backbone=vision mlp=gelu "

/* As in the log-ODE form of SLiCE's time series: a step is an increment of the path, and nothing else moves the state:
 * neither a letter of time of its own nor the bias of an encoder, which EigenWorms' 17984 points multiply past fp32. */
#define SERIES_MODELS "slice:interval=16,depth=2 slice:interval=16 "
#define SERIES_PATH   "dt=1,init-std=0.25,time-letter=no"
#define SERIES_NET    "backbone=slice-paper encoder=linear layers=1 "

/* SLiCE's own sizes and rate for each problem (Benjamin-Walker/log-neural-cdes, experiment_configs/repeats), whose
 * other layers have them too here. */
#define UEA_PAPER(TASK, INTERVAL, DEPTH, DIM, RATE, TIME)                                                              \
    {                                                                                                                  \
        .suite = TASK, .name = "paper",                                                                                \
        .models = "slice:interval=" #INTERVAL ",depth=" #DEPTH " slice:interval=" #INTERVAL ",structure=diagonal "     \
                  "slice:interval=" #INTERVAL ",depth=" #DEPTH ",structure=dense lru mamba2 lstm",                     \
        .model_options = SERIES_PATH, .task_options = "increments=yes,scale=yes,time=" TIME,                           \
        .flags = SERIES_NET "dim=" #DIM " batch=32 steps=100k eval-every=1000 patience=11", .rates = RATE, .seeds = 5, \
        .adapted = true,                                                                                               \
        .note = "paper (SLiCE's time series, in the net of its token tasks): batch 32, a constant rate, at most "      \
                "100000 steps, validated every\n1000, ended after 11 validations without a gain; a new division of "   \
                "the series for every seed",                                                                           \
    }

/* Of the Long Range Arena's released texts: S4's training of one (configs/experiment/lra), and shorter ones. */
#define LRA_TEXTS(TASK, LENGTH, SMOKE, QUICK, PAPER, NOTE)                                                             \
    {.suite = TASK,                                                                                                    \
     .name = "smoke",                                                                                                  \
     .models = "bdlru:m=2,blocks=8 myosotis:heads=8 lstm:hidden=16",                                                   \
     .model_options = "",                                                                                              \
     .task_options = "length=" SMOKE,                                                                                  \
     .flags = "dim=16 steps=20 batch=16",                                                                              \
     .rates = "0.002",                                                                                                 \
     .seeds = 1,                                                                                                       \
     .note = "smoke: " SMOKE " characters, 20 steps; shows that everything runs, not how good a model is"},            \
        {.suite = TASK,                                                                                                \
         .name = "quick",                                                                                              \
         .models = "bdlru:m=2 lru mamba2 lstm " MYOSOTIS,                                                              \
         .model_options = "",                                                                                          \
         .task_options = "length=" QUICK,                                                                              \
         .flags = "backbone=s5 dim=64 layers=2 batch=50 steps=1000 eval-every=500 schedule=cosine warmup=100 "         \
                  "lr-min=0 decay=0.05",                                                                               \
         .rates = "0.005",                                                                                             \
         .seeds = 1,                                                                                                   \
         .note = "quick: " QUICK " characters instead of " LENGTH ", width 64, 2 layers, 1000 steps of 50, one rate, " \
                 "one seed"},                                                                                          \
    {                                                                                                                  \
        .suite = TASK, .name = "paper", .models = "bdlru:m=2 lru mamba2 lstm " MYOSOTIS, .model_options = "",          \
        .task_options = "",                                                                                            \
        .flags = "backbone=s5 dim=256 layers=6 " PAPER " schedule=cosine lr-min=0 decay=0.05 bidirectional=yes "       \
                 "ssm-lr-factor=0.1",                                                                                  \
        .rates = "0.01", .seeds = 1, .adapted = true, .note = NOTE,                                                    \
    }

/* pLSTM's blocks of a P and a D layer, on the graph and on the reversed one (ml-jku/plstm_experiments). */
#define GRAPH_PLSTM  "plstm-graph:mode=PD,direction=both@degree-code=yes"
#define GRAPH_MODELS GRAPH_PLSTM " gcn gin"
#define GRAPH_SMOKE  "plstm-graph:heads=2,mode=PD,direction=both@degree-code=yes gcn gin gat:heads=2 mpnn"
#define GRAPH_TABLE  "gat:heads=1 gcn gin mpnn " GRAPH_PLSTM
#define GRAPH_FLAGS  "layers=4 mlp=gelu batch=64 lr-min=0 decay=0.01 clip=1 "
#define GRAPH_QUICK  GRAPH_FLAGS "schedule=cosine "
/* Its scheduler is called behind each epoch, and its first epoch is at 1e-6 of the rate (base_model.py there). */
#define GRAPH_PAPER GRAPH_FLAGS "dim=96 epochs=100 schedule=cosine-epoch warmup-least=1e-6 "
#define GRAPH_NOTE                                                                                                     \
    "paper (pLSTM's graphs): ten folds, 100 epochs, warm-up over 5 of them, cosine to 0, both by epochs, clip 1; all " \
    "models at width 96\nwith 4 layers, an MLP behind each, mean pooling, one linear map as head, where the paper's "  \
    "baselines have width 128, 4 or 8\nbare layers and sums, GIN batch norms and a linear map of each layer's, the "   \
    "others a head of two maps, and all have under 300000\nparameters (here more)"
#define GRAPHS(SUITE, NAME, MODELS, OPTIONS, FLAGS, VARIANTS, RATE, NOTE)                                              \
    {                                                                                                                  \
        .suite = SUITE, .name = NAME, .models = MODELS, .model_options = "", .task_options = OPTIONS, .flags = FLAGS,  \
        .variants = VARIANTS, .rates = RATE, .seeds = 1, .note = NOTE                                                  \
    }
/* Warm-up: the steps of five epochs. */
#define TUD_PAPER(TASK, WARMUP)                                                                                        \
    GRAPHS(TASK, "paper", GRAPH_TABLE, "", GRAPH_PAPER "warmup=" WARMUP, true, "0.001", GRAPH_NOTE)
#define TUD_ONE_FOLD(TASK)                                                                                             \
    GRAPHS(TASK, "quick", GRAPH_MODELS, "", GRAPH_QUICK "dim=32 epochs=20 warmup=20", false, "0.002",                  \
           "quick: one fold of ten, width 32, 4 layers, 20 epochs, one rate, one seed")

#define MAD_SMOKE "lstm:hidden=16 bdlru:m=2,blocks=8 mamba2:state=8,headdim=8 deltanet:heads=2 slice attention:heads=2"

/* What the paper calls the "MLP decoder" behind the mixer is read as MAD's layer "mlp", whose activation is GELU: with
 * it BD-LRU of m >= 3 learns S3 from 250 sequences and stands out, as published, with MAD's SwiGLU it does not
 * (docs/results.md). */
#define WORD_PROBLEM_PAPER(SUITE, MORE_FLAGS, MORE_NOTE)                                                               \
    {                                                                                                                  \
        .suite = SUITE, .name = "paper", .models = WORD_PROBLEM_MODELS, .model_options = "", .task_options = "",       \
        .flags = "epochs=200 schedule=cosine-epoch lr-min=1e-5 mlp=gelu" MORE_FLAGS, .rates = "0.001,0.0005,0.0001",   \
        .seeds = 5, .note = "paper: AdamW, 3 learning rates x 5 seeds, cosine to 1e-5 over MAD's 200 epochs" MORE_NOTE \
    }

static const struct profile profiles[] = {
    {.suite = "word-problem",
     .name = "smoke",
     .models = "bdlru:m=1,blocks=8 bdlru:m=3,blocks=8 hlru:m=2,channels=8 lstm lru:state=8",
     .model_options = "",
     .task_options = "n_train=1000,n_val=100,n_test=100",
     .flags = "dim=16 epochs=2 batch=32",
     .rates = "0.002",
     .seeds = 1,
     .note = "smoke: tiny sizes, two epochs; shows that everything runs, not how good a model is"},
    {.suite = "word-problem",
     .name = "quick",
     .models = "bdlru:m=5@stop-after=5000 bdlru:m=1 lstm",
     .model_options = "gate-init=5",
     .task_options = "",
     .flags = "epochs=200 schedule=cosine-epoch lr-min=1e-5 stop-after=2500 mlp=none decay=0.3",
     .rates = "0.002",
     .seeds = 1,
     .note = "quick: not the paper's training, but one that takes fewer steps: no MLP, initial gates 5 times as large, "
             "rate 2e-3, decay .3\n(paper: an MLP, 1, 1e-3, not stated); one seed, until solved or for 2500 steps, "
             "BD-LRU m=5 5000, of MAD's 200 epochs"},
    {.suite = "s3",
     .name = "quick",
     .models = "bdlru:m=1 bdlru:m=2 bdlru:m=3 bdlru:m=5 hlru:m=1 hlru:m=3 hlru:m=5 lstm",
     .model_options = "",
     .task_options = "",
     .flags = "epochs=200 schedule=cosine-epoch lr-min=1e-5 mlp=gelu stop-after=3000",
     .rates = "0.001",
     .seeds = 1,
     .as_published = true,
     .note = "quick: the paper's training with one of its rates and one seed, until solved or for 3000 of the 15800 "
             "steps of MAD's 200 epochs"},
    {.suite = "s4",
     .name = "quick",
     .models = "bdlru:m=1 bdlru:m=2 bdlru:m=4 hlru:m=4 lstm",
     .model_options = "",
     .task_options = "",
     .flags = "epochs=200 schedule=cosine-epoch lr-min=1e-5 mlp=gelu stop-after=2400",
     .rates = "0.001",
     .seeds = 1,
     .as_published = true,
     .note = "quick: the paper's training with one of its rates and one seed, until solved or for 2400 of the 78200 "
             "steps of MAD's 200 epochs"},
    WORD_PROBLEM_PAPER("word-problem", "", ""),
    WORD_PROBLEM_PAPER("s3", " eval-every=158", ", validated every two"),
    WORD_PROBLEM_PAPER("s4-3k", " eval-every=120", ", validated every\nfive"),
    WORD_PROBLEM_PAPER("s3-250", " eval-every=20",
                       ", validated every ten, since\na validation has eight times the sequences of an epoch"),
    {.suite = "a5-slice",
     .name = "smoke",
     .models = "slice:block=4 lstm:hidden=16",
     .model_options = "penalty=0.001",
     .task_options = "length=3..5,n_train=1000,n_val=100",
     .flags = "backbone=slice-paper dim=16 steps=40 batch=32 decay=0.01",
     .axes = "layers=1..2",
     .rates = "0.002",
     .seeds = 1,
     .note = "smoke: three lengths, tiny sizes, 40 steps; shows that everything runs, not how good a model is"},
    {.suite = "a5-slice",
     .name = "quick",
     .models = "slice:block=8 slice:structure=diagonal lstm deltaproduct:steps=4,forget=yes mamba2",
     .model_options = "penalty=0.001",
     .task_options = "length=3..4,n_train=100k",
     .flags = "backbone=slice-paper dim=64 steps=20000 eval-every=500 batch=64 schedule=cosine warmup=500 lr-min=1e-5 "
              "decay=0.01 dropout=0.1 stop-at=0.95",
     .axes = "layers=1..2",
     .rates = "0.002",
     .seeds = 1,
     .note = "quick: lengths 3 and 4, 1 and 2 layers of width 64, 20000 steps of 64 strings: a model without enough "
             "layers may also be\none without enough steps"},
    {.suite = "a5-slice",
     .name = "paper",
     .models = A5_MODELS,
     .model_options = "penalty=0.001,init-std=1",
     .task_options = "length=3..20",
     .flags = "backbone=slice-paper batch=256 steps=1M eval-every=10000 schedule=cosine warmup=100k lr-min=1e-5 "
              "decay=0.01 dropout=0.1 stop-at=0.99",
     .axes = "layers=1..4",
     .rates = "0.002",
     .seeds = 1,
     .note = "paper (SLiCE's A5): lengths 3 to 20, 1 to 4 layers, a step learns from 256 strings and 25 of length 2; "
             "transitions of about 1024\nnumbers a channel; a million steps at most, validated every 10000, are those "
             "of the authors' a5.json, whose runs end at\n.999 of the validation (here .99) and which they repeat five "
             "times (here one seed); width 1024 of the baselines, ranks and\nkeep rates are ours, for the copy of the "
             "paper read here has lost its digits"},
    {.suite = "mad",
     .name = "smoke",
     .models = MAD_SMOKE,
     .model_options = "",
     .task_options = "length=32,n_train=512,n_val=64,n_test=64",
     .flags = "dim=16 epochs=2 batch=32",
     .rates = "0.002",
     .seeds = 1,
     .note = "smoke: tiny sizes, two epochs; shows that everything runs, not how good a model is"},
    {.suite = "mad",
     .name = "quick",
     .models = MAD_MODELS,
     .model_options = "",
     .task_options = "",
     .flags = "dim=64 epochs=10 schedule=cosine-epoch lr-min=1e-5",
     .rates = "0.003",
     .seeds = 1,
     .note = "quick: width 64, one layer, 10 epochs where MAD trains 200, with a rate for so few, one seed"},
    {.suite = "mad",
     .name = "paper",
     .models = MAD_MODELS,
     .model_options = "",
     .task_options = "",
     .flags = "epochs=200 schedule=cosine-epoch lr-min=1e-5 mlp=gelu",
     .rates = "0.001,0.0005,0.0001",
     .seeds = 5,
     .note = "paper: the training of BD-LRU/H-LRU (one layer, 3 learning rates x 5 seeds, cosine to 1e-5 over MAD's "
             "200 epochs) on MAD's\nsizes; that paper's own are the tasks hlru-recall, hlru-copy and hlru-compress; "
             "MAD itself: --profile mad"},
    {.suite = "mad",
     .name = "mad",
     .models = MAD_MODELS,
     .model_options = "",
     .task_options = "",
     .flags = "layers=2 epochs=200 schedule=mad-const",
     .axes = "decay=0,0.1",
     .variants = true,
     .rates = "0.0001,0.0005,0.001",
     .seeds = 1,
     .as_published = true,
     .note = "mad (MAD's own protocol): 2 layers, 200 epochs at a constant rate (--schedule mad-cosine is the declared "
             "one), 3 rates x decay 0, 0.1,\nbaseline and every one-at-a-time change, best of the six runs of each; "
             "float32 where MAD has bf16"},
    {.suite = "mad",
     .name = "hlru-paper",
     .models = MAD_MODELS,
     .model_options = "",
     .task_options = "length=64,n_train=20k",
     .flags = "epochs=200 schedule=cosine-epoch lr-min=1e-5 mlp=gelu",
     .variants = true,
     .rates = "0.001,0.0005,0.0001",
     .seeds = 5,
     .as_published = true,
     .note = "hlru-paper (BD-LRU/H-LRU, Table 1): one layer, length 64, 20000 examples, and V 32, length 128, 10000 "
             "examples one at a time;\n3 rates x 5 seeds, no decay (not stated there), cosine to 1e-5 over MAD's 200 "
             "epochs, best run of each setting"},
    {.suite = "mqar",
     .name = "smoke",
     .models = MAD_SMOKE,
     .model_options = "",
     .task_options = "length=32,pairs=2,vocab=64,n_train=512,n_val=64,n_test=64",
     .flags = "dim=16 epochs=2 batch=32",
     .rates = "0.002",
     .seeds = 1,
     .note = "smoke: tiny sizes, two epochs; shows that everything runs, not how good a model is"},
    {.suite = "mqar",
     .name = "quick",
     .models = "attention mamba2 deltanet bdlru:m=2 bdlru:m=4 hlru:m=2 lstm",
     .model_options = "",
     .task_options = "vocab=1024,n_train=20000,n_val=1000,n_test=1000",
     .flags = "layers=2 dim=64 epochs=8 schedule=cosine-epoch lr-min=0 decay=0.1",
     .rates = "0.002",
     .seeds = 1,
     .note = "quick: 1024 ids instead of 8192, width 64, a fifth of the data for 8 epochs instead of 64, one rate, one "
             "seed"},
    {.suite = "mqar",
     .name = "paper",
     .models = MAD_MODELS,
     .model_options = "",
     .task_options = "",
     .flags = "layers=2 mlp=none batch=512 epochs=64 schedule=cosine-epoch lr-min=0 decay=0.1 stop-at=0.99",
     .rates = "0.0001,0.000464,0.00215,0.01",
     .seeds = 1,
     .adapted = true,
     .note =
         "paper (zoology's Figure 2): 4 learning rates, cosine per epoch to 0 over 64 epochs, decay 0.1, no MLP, until "
         ".99 of\nthe validation; dim is 128 unless given (64..512 there), the batch 512 (256 at length 256, 128 at "
         "512 "
         "there); attention\nhas 4 heads and RoPE where theirs has one and learnt positions; no dropout (.1 there)"},
    {.suite = "regular",
     .name = "smoke",
     .models = "bdlru:m=2,blocks=8 slice lstm:hidden=16",
     .model_options = "",
     .task_options = "eval_max_length=64,n_val=128,n_test=128",
     .flags = "backbone=slice-paper dim=16 layers=1 steps=60 batch=32",
     .rates = "0.002",
     .seeds = 1,
     .note = "smoke: tiny sizes, 60 steps; shows that everything runs, not how good a model is"},
    {.suite = "regular",
     .name = "quick",
     .models = REGULAR_MODELS(""),
     .model_options = "dt=0.1,penalty=0.001",
     .task_options = "n_val=1024,n_test=4096",
     .flags = "backbone=slice-paper layers=2 dim=64 steps=4000 eval-every=500 batch=64 schedule=cosine warmup=400 "
              "lr-min=1e-5 decay=0.01 dropout=0.01 stop-at=0.9995",
     .rates = "0.002",
     .seeds = 1,
     .note =
         "quick: width 64, batch 64, 4000 steps where the paper takes 100001 of 256, one seed; slice at dt 0.1 instead "
         "of 0.025,\nwith which these steps are enough for it to learn parity"},
    {.suite = "regular",
     .name = "paper",
     .models = REGULAR_MODELS(",outgate=yes"),
     .model_options = "penalty=0.001",
     .task_options = "",
     .flags = "backbone=slice-paper layers=2 steps=100001 eval-every=5000 batch=256 schedule=cosine warmup=10000 "
              "lr-min=1e-5 decay=0.01 dropout=0.01 stop-at=0.9995",
     .rates = "0.002",
     .seeds = 5,
     .adapted = true,
     .note =
         "paper (SLiCE): 100001 steps of 256, linear warm-up over a tenth, cosine to 1e-5, 5 seeds; every layer in the "
         "wrapper\nthat it has there, those that are not there (BD-LRU, pLSTM) in that of most of its baselines, at "
         "width 128\n(the plan slice-regular has the paper's widths)"},
    {.suite = "lra",
     .name = "smoke",
     .models = "bdlru:m=2,blocks=8 myosotis:heads=8 lstm:hidden=16",
     .model_options = "",
     .task_options = "min_length=10,max_length=40,n_train=512,n_val=64,n_test=64",
     .flags = "dim=16 epochs=2 batch=32",
     .rates = "0.002",
     .seeds = 1,
     .note = "smoke: short expressions, two epochs; shows that everything runs, not how good a model is"},
    {.suite = "lra",
     .name = "quick",
     .models = "bdlru:m=2 slice plstm lstm " MYOSOTIS,
     .model_options = "",
     .task_options = "min_length=20,max_length=100,n_train=20000,n_val=1000,n_test=2000",
     .flags = "dim=64 layers=2 batch=32 epochs=8 schedule=cosine warmup=1000 lr-min=0 decay=0.05",
     .rates = "0.002",
     .seeds = 1,
     .note = "quick: expressions of 20 to 100 tokens instead of 500 to 2000, width 64, 2 layers, 8 epochs, one seed"},
    {.suite = "lra",
     .name = "paper",
     .models = "bdlru:m=2 plstm lstm " MYOSOTIS,
     .model_options = "",
     .task_options = "",
     .flags = "backbone=s5 dim=256 layers=6 batch=32 epochs=40 schedule=cosine warmup=12000 lr-min=0 decay=0.05 "
              "bidirectional=yes ssm-lr-factor=0.1",
     .rates = "0.01",
     .seeds = 1,
     .adapted = true,
     .note = "paper (S4's ListOps, in S5's net): 6 layers, width 256, batch 32, 40 epochs, warm-up 12000 steps, cosine "
             "to 0, a tenth of\nthe rate for dynamics and norms; on expressions of our own unless file= names the "
             "released ones; without slice,\nwhich six layers of 2000 moves each carry past fp32 at the first step"},
#include "harness/study/profiles/profile_images.def"
    {.suite = "text",
     .name = "smoke",
     .models = "bdlru:m=2,blocks=8 myosotis:heads=8 lstm:hidden=16",
     .model_options = "",
     .task_options = "min_length=20,max_length=60,n_train=512,n_val=64,n_test=64",
     .flags = "dim=16 epochs=2 batch=32",
     .rates = "0.002",
     .seeds = 1,
     .note = "smoke: texts of up to 60 characters, two epochs; shows that everything runs, not how good a model is"},
    {.suite = "text",
     .name = "quick",
     .models = "bdlru:m=2 lru mamba2 lstm " MYOSOTIS,
     .model_options = "",
     .task_options = "min_length=12,max_length=32,share=0.5,n_train=100k,n_val=1000,n_test=2000",
     .flags = "backbone=s5 dim=64 layers=2 batch=50 steps=1500 eval-every=250 schedule=cosine warmup=100 lr-min=0 "
              "decay=0.05",
     .rates = "0.005",
     .seeds = 1,
     .note = "quick: texts of 12 to 32 characters instead of 1000 to 4000, half of them brackets instead of a fifth; "
             "width 64, 2 layers,\n1500 steps of 50, one rate, one seed"},
    {.suite = "text",
     .name = "paper",
     .models = "bdlru:m=2 lru mamba2 lstm " MYOSOTIS,
     .model_options = "",
     .task_options = "",
     .flags = "backbone=s5 dim=256 layers=6 batch=16 epochs=32 schedule=cosine lr-min=0 decay=0.05 bidirectional=yes "
              "ssm-lr-factor=0.1",
     .rates = "0.01",
     .seeds = 1,
     .note =
         "paper (S4's text of the Long Range Arena): 6 layers, width 256, batch 16, 32 epochs, cosine to 0; on texts "
         "of our own"},
#include "harness/study/profiles/profile_series.def"
    {.suite = "pairs",
     .name = "smoke",
     .models = "bdlru:m=2,blocks=8 myosotis:heads=8 lstm:hidden=16",
     .model_options = "",
     .task_options = "min_length=20,max_length=30,passage=6,n_train=256,n_val=64,n_test=64",
     .flags = "dim=16 epochs=2 batch=32",
     .rates = "0.002",
     .seeds = 1,
     .note = "smoke: documents of up to 30 words, two epochs; shows that everything runs, not how good a model is"},
    {.suite = "pairs",
     .name = "quick",
     .models = "bdlru:m=2 lru mamba2 lstm " MYOSOTIS,
     .model_options = "",
     .task_options = "min_length=12,max_length=20,passage=4,words=8,n_train=50k,n_val=1000,n_test=2000",
     .flags = "backbone=s5 dim=64 layers=2 batch=50 steps=2000 eval-every=250 schedule=cosine warmup=100 lr-min=0 "
              "decay=0.05",
     .rates = "0.005",
     .seeds = 1,
     .note = "quick: documents of 12 to 20 words, eight different ones, that share 4, instead of 1000 to 4000 that "
             "share 40; width 64,\n2 layers, 2000 steps of 50, one rate, one seed"},
    {.suite = "pairs",
     .name = "paper",
     .models = "bdlru:m=2 lru mamba2 lstm " MYOSOTIS,
     .model_options = "",
     .task_options = "",
     .flags = "backbone=s5 dim=256 layers=6 batch=64 epochs=20 schedule=cosine warmup=2500 lr-min=0 decay=0.05 "
              "bidirectional=yes ssm-lr-factor=0.1",
     .rates = "0.01",
     .seeds = 1,
     .note = "paper (S4's retrieval of the Long Range Arena): 6 layers, width 256, batch 64, 20 epochs, warm-up 2500 "
             "steps, which its\ncode had before (now 5000), cosine to 0; on documents of our own"},
    LRA_TEXTS("lra-text", "4096", "64", "256", "batch=16 epochs=32",
              "paper (S4's text of the Long Range Arena): 6 layers, width 256, batch 16, 32 epochs, cosine to 0; "
              "without the warm-up\nof 5000 steps that its code has now, and of 1000 that an earlier one had"),
    LRA_TEXTS("lra-retrieval", "4000", "64", "256", "batch=64 epochs=20 warmup=2500",
              "paper (S4's retrieval of the Long Range Arena): 6 layers, width 256, batch 64, 20 epochs, warm-up 2500 "
              "steps, which its\ncode had before (now 5000), cosine to 0"),
    {.suite = PROFILE_ANY_SUITE,
     .name = "smoke",
     .models = "bdlru:m=2,blocks=8 lstm:hidden=16",
     .model_options = "",
     .task_options = "",
     .flags = "dim=16 steps=40 batch=16",
     .rates = "0.002",
     .seeds = 1,
     .note =
         "smoke: tiny sizes, 40 steps; shows that everything runs, not how good a model is. The task has no profile "
         "of its own"},
    {.suite = PROFILE_ANY_SUITE,
     .name = "quick",
     .models = "bdlru:m=2 slice plstm mamba2 lstm",
     .model_options = "",
     .task_options = "",
     .flags = "dim=64 layers=2 epochs=10 batch=64 schedule=cosine lr-min=1e-5",
     .rates = "0.002",
     .seeds = 1,
     .note = "quick: the task has no profile of its own; 2 layers of width 64, 10 epochs, one rate, one seed"},
    {.suite = PROFILE_ANY_SUITE,
     .name = "paper",
     .models = "bdlru:m=2 slice plstm mamba2 lstm",
     .model_options = "",
     .task_options = "",
     .flags = "layers=2 epochs=100 schedule=cosine lr-min=1e-5 decay=0.01",
     .rates = "0.0003,0.001,0.003",
     .seeds = 5,
     .note = "paper: the task has no profile of its own; 2 layers of width 128, 100 epochs, 3 rates x 5 seeds"},
    {0}};

const struct profile *profile_list(void) {
    return profiles;
}

/* The profile of that name of a task or suite, or NULL; *known lists the names that it has. */
static const struct profile *find(const char *of, const char *name, char *known, size_t size) {
    for (const struct profile *p = profiles; p->suite; p++) {
        if (strcmp(p->suite, of) != 0) continue;
        if (!strcmp(p->name, name)) return p;
        size_t used = strlen(known);
        if (!strstr(known, p->name)) snprintf(known + used, size - used, " %s", p->name);
    }
    return NULL;
}

bool profile_is_name(const char *name) {
    for (const struct profile *p = profile_list(); p->suite; p++)
        if (!strcmp(p->name, name)) return true;
    return false;
}

static bool has_flag(const char *pairs, const char *flag) {
    struct label flags;
    return pairs && label_parse_pairs(&flags, "the profile", pairs, " ", NULL) == ST_OK && label_get(&flags, flag);
}

bool profile_sets_flag(const char *flag) {
    for (const struct profile *p = profile_list(); p->suite; p++)
        if (has_flag(p->flags, flag) || has_flag(p->axes, flag)) return true;
    return false;
}

enum status profile_find(const char *task, const char *suite, const char *name, const struct profile **profile,
                         struct error *e) {
    char known[128] = "";
    *profile = find(task, name, known, sizeof known);
    if (!*profile) *profile = find(suite, name, known, sizeof known);
    if (!*profile && !*known) *profile = find(PROFILE_ANY_SUITE, name, known, sizeof known);
    if (*profile) return ST_OK;
    return fail(e, ST_USAGE, "unknown profile '%s'; of %s there are:%s", name, task, known);
}

bool profile_as_published(const char *task, const char *suite, const char *name) {
    const struct profile *p;
    struct label l;
    struct error e;
    if (label_parse(&l, "task", task, &e) != ST_OK || profile_find(label_name(&l), suite, name, &p, &e) != ST_OK)
        return false;
    return p->as_published || (strcmp(p->name, "paper") == 0 && !p->adapted);
}
