/* setup.c - the resolution of a run; see setup.h. */
#include "harness/study/setup.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/schedule.h"
#include "harness/study/profile.h"
#include "harness/store/files.h"
#include "harness/store/version.h"
#include "tasks/curriculum.h"

/* Appends printf-style text to the description of a run, which becomes its identity. No part of it may be missing. */
static enum status append(char text[CONFIG_TEXT], struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static enum status append(char text[CONFIG_TEXT], struct error *e, const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(text + used, CONFIG_TEXT - used, format, args);
    va_end(args);
    if (more >= 0 && used + (size_t)more < CONFIG_TEXT) return ST_OK;
    return fail(e, ST_USAGE, "the configuration of the run is longer than %d characters; shorten names of files",
                CONFIG_TEXT - 1);
}

/* A run's text has two uses. To be read again as the configuration, it has every option. To be hashed for the run's id,
 * it lacks options at their default, so that a new option changes no old id. But it always has the seed: otherwise the
 * run with the default seed would have the id of its cell (the runs that differ only in the seed). */
enum purpose { TO_BE_READ, TO_IDENTIFY };

static enum status append_options(char text[CONFIG_TEXT], const char *prefix, const struct option *table,
                                  const void *object, enum purpose purpose, unsigned skip, struct error *e) {
    for (const struct option *o = table; o->name; o++) {
        char value[OPTION_TEXT + 1], usual[OPTION_TEXT + 1];
        if (o->flags & skip) continue;
        option_format_value(o, object, value, sizeof value);
        if (purpose == TO_IDENTIFY && !(o->flags & OPT_SEED)) {
            TRY(option_canonical(o, "the configuration", o->name, o->value, usual, sizeof usual, e));
            if (!strcmp(value, usual)) continue;
        }
        TRY(append(text, e, "%s%s=%s\n", prefix, o->name, value));
    }
    return ST_OK;
}

static enum status describe(const struct task_choice *task, const struct config *config,
                            const struct model_choice *model, enum purpose purpose, unsigned skip,
                            char text[CONFIG_TEXT], struct error *e) {
    unsigned of_parts = purpose == TO_IDENTIFY ? OPT_HERE : 0;
    text[0] = 0;
    TRY(append(text, e, "task=%s\n", task->task->name));
    TRY(append_options(text, "task.", task->task->options, task->inst, purpose, of_parts, e));
    TRY(append(text, e, "model=%s\n", model->model->name));
    TRY(append_options(text, "model.", model->model->options, model->inst, purpose, of_parts, e));
    TRY(append_options(text, "", backbone_options, config, purpose, skip, e));
    return append_options(text, "", config_options, config, purpose, skip, e);
}

/* Writes the text to be hashed. It has the sizes to which the model was fitted, and the kind of device (cuda) without
 * the device's number. The content of an input file is part of it (OPT_FOUND), but not the file's path (OPT_HERE). */
static enum status describe_identity(const struct setup *s, unsigned skip, char text[CONFIG_TEXT], struct error *e) {
    struct config config = s->spec.config;
    config.device[strcspn(config.device, ":")] = 0;
    TRY(describe(&s->spec.task, &config, &s->shapes.model, TO_IDENTIFY, skip | OPT_RUNTIME, text, e));
    return append(text, e, "task-version=%d\ndtype=%s\nnumerics=%s\n", task_version(&s->spec.task), REAL_NAME,
                  s->id.numerics);
}

enum status setup_config_text(const struct spec *s, char text[CONFIG_TEXT], struct error *e) {
    return describe(&s->task, &s->config, &s->model, TO_BE_READ, OPT_HERE, text, e);
}

static enum status keep(char **kept, const char *text, struct error *e) {
    char *copy = strdup(text);
    if (!copy) return fail(e, ST_MEMORY, "no memory for a run");
    free(*kept);
    *kept = copy;
    return ST_OK;
}

/* Sets the ids of the run, of its cell and of its row, and the run's profile: a run keeps the name of its profile only
 * if that profile has this run; otherwise its profile is "custom". The configuration text has the options as the user
 * gave them, before the model is fitted. */
static enum status identify(struct setup *s, struct error *e) {
    char text[CONFIG_TEXT], *profile = s->spec.config.profile;
    struct label key;
    TRY(describe_identity(s, OPT_SEED, text, e));
    record_hash(text, s->id.cell_id);
    TRY(describe_identity(s, 0, text, e));
    record_hash(text, s->id.run_id);
    TRY(keep(&s->id.text, text, e));
    TRY(row_key(text, &key, e));
    record_hash_label(&key, s->id.row_id);
    struct profile_question question = {.name = profile,
                                        .task = s->spec.task.name,
                                        .suite = s->spec.task.task->suite,
                                        .key = &key,
                                        .lr = s->spec.config.lr,
                                        .n_train = s->spec.task.shape.examples[SPLIT_TRAIN]};
    if (!profile_holds(&question)) TRY(text_copy(PROFILE_CUSTOM, profile, sizeof s->spec.config.profile, e));
    TRY(setup_config_text(&s->spec, text, e));
    return keep(&s->id.config_text, text, e);
}

/* Sets the id of a run from the text of a run that differs only in the seed. */
static enum status identify_seed(struct setup *s, const char *text, struct error *e) {
    char other[CONFIG_TEXT];
    const char *line = strstr(text, "\nseed=") + 1, *end = strchr(line, '\n');
    int n = snprintf(other, sizeof other, "%.*sseed=%" PRId64 "%s", (int)(line - text), text, s->spec.config.seed, end);
    if (n < 0 || (size_t)n >= sizeof other)
        return fail(e, ST_USAGE, "the configuration of the run is longer than %d characters", CONFIG_TEXT - 1);
    record_hash(other, s->id.run_id);
    return keep(&s->id.text, other, e);
}

/* --- flags without effect on some nets or tasks ------------------------------------------------------------------- */

static const struct {
    const char *flag, *chooses;
} partial[] = {{"mlp", "the MLP"}, {"norm", "the norms"}, {"pool", "how one label per sequence is read out"}};
enum { PARTIAL = sizeof partial / sizeof *partial, OF_POOL = PARTIAL - 1 };

static bool acts(const struct spec *s, int i) {
    const struct backbone net = backbone_resolved(&s->config.net, s->model.model);
    return i == OF_POOL ? s->task.shape.per_sequence : backbone_takes_parts(&net);
}

/* Sets a flag that has no effect for this net or task to its default, so that it does not change the run's identity. */
static enum status leave_out_idle(struct setup *s, struct error *e) {
    for (int i = 0; i < PARTIAL; i++) {
        const struct option *o = option_find(backbone_options, partial[i].flag);
        char value[OPTION_TEXT + 1];
        option_format_value(o, &s->spec.config.net, value, sizeof value);
        if (acts(&s->spec, i) || !strcmp(value, o->value)) continue;
        s->shapes.in_vain |= 1U << i;
        TRY(config_set(&s->spec.config, partial[i].flag, o->value, e));
    }
    return ST_OK;
}

enum status setup_check_causal(const struct spec *s, struct error *e) {
    const struct model *model = s->model.model;
    if (!s->task.shape.needs_causal || net_causal(&s->config.net, &s->model)) return ST_OK;
    return fail(
        e, ST_USAGE,
        "task %s needs a causal mixer and %s is not: it sees later inputs; take another (`lrnn info MODEL` says "
        "whether it is causal)",
        s->task.name, model->causal ? "a bidirectional one" : model->name);
}

enum status setup_check_asked(struct setup *const *setups, int n, const struct label *asked, struct error *e) {
    for (int k = 0; k < n; k++) TRY(setup_check_causal(&setups[k]->spec, e));
    for (int i = 0; i < PARTIAL; i++) {
        const struct setup *idle = NULL;
        bool any = false;
        char backbone[OPTION_TEXT + 1];
        for (int k = 0; k < n; k++) {
            any = any || acts(&setups[k]->spec, i);
            if (setups[k]->shapes.in_vain >> i & 1) idle = setups[k];
        }
        if (!idle || any || (asked && !label_get(asked, partial[i].flag))) continue;
        if (i == OF_POOL)
            return fail(e, ST_USAGE, "--%s chooses %s, and %s has one label per position; leave it out",
                        partial[i].flag, partial[i].chooses, idle->spec.task.name);
        option_format_value(option_find(backbone_options, "backbone"), &idle->spec.config, backbone, sizeof backbone);
        return fail(
            e, ST_USAGE,
            "--%s chooses %s of --backbone mad-lm and vision, and the backbone %s has its own or none; leave it "
            "out",
            partial[i].flag, partial[i].chooses, backbone);
    }
    return ST_OK;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Names the model, such as "bdlru:m=5,blocks=64;swiglu": the mixer's options that are not at their default or say how
 * large it is, and the MLP. Options that follow from the sizes are left out, unless the user gave them. */
static enum status name_model(struct setup *s, struct error *e) {
    const struct model *model = s->spec.model.model;
    struct label label;
    char mixer[RECORD_TEXT], mlp[OPTION_TEXT + 1];
    TRY(label_of(&label, model->name, model->options, s->spec.model.inst, 0, e));
    TRY(label_shorten(&label, model->options, OPT_BLOCKS | OPT_ORDER, e));
    TRY(label_format(&label, mixer, sizeof mixer, e));
    const struct backbone net = backbone_resolved(&s->spec.config.net, model);
    option_format_value(option_find(backbone_options, "mlp"), &net, mlp, sizeof mlp);
    int n = snprintf(s->id.model_label, sizeof s->id.model_label, "%s;%s", mixer, mlp);
    if (n > 0 && (size_t)n < sizeof s->id.model_label) return ST_OK;
    return fail(e, ST_USAGE, "model %s: its options are longer than %zu characters together; shorten them", model->name,
                sizeof s->id.model_label - 1);
}

static enum status check_fit(const struct spec *s, struct error *e) {
    const struct config *c = &s->config;
    const struct task_shape *shape = &s->task.shape;
    const size_t profile_bytes = sizeof((struct run *)0)->profile;
    enum device device;
    int index;
    if (strlen(c->profile) >= profile_bytes)
        return fail(e, ST_USAGE, "--profile %.60s is longer than the %zu characters that a record has for it",
                    c->profile, profile_bytes - 1);
    TRY(place_parse(c->device, &device, &index, e));
    TRY(net_check(&c->net, s->model.model, e));
    if (s->task.shape.reading.one_vector && c->net.kind != BACKBONE_MAD_LM)
        return fail(e, ST_USAGE, "task %s is decoded from one vector per sequence; that needs --backbone mad-lm",
                    s->task.name);
    bool vocabulary = shape->vocab_out > c->net.dim;
    int64_t width = vocabulary ? shape->vocab_out : c->net.dim;
    int64_t T = shape->T_eval > shape->T ? shape->T_eval : shape->T;
    double bytes = (double)(c->batch * task_documents(shape)) * (double)T * (double)width * sizeof(real);
    if (bytes > (double)machine_memory_bytes())
        return fail(e, ST_USAGE,
                    "batch %" PRId64 " x length %" PRId64 " x %s %" PRId64
                    " needs %.0f MB for one activation but the machine has %zu MB; lower one of them",
                    c->batch, T, vocabulary ? "vocabulary" : "width", width, bytes / 1048576,
                    machine_memory_bytes() >> 20);
    return ST_OK;
}

/* If the images have another size than in training, height and width stay unset, because each image has its own. A
 * model may have a tree over the sequence, with parameters per level: if lengths differ, all sequences use the tree of
 * the longest one, and shorter sequences leave some of its leaves empty. */
enum status setup_fit(const struct spec *s, const struct net_shape *net, struct model_choice *fitted, struct error *e) {
    const struct task_shape *shape = &s->task.shape;
    struct dims d = {.B = net->B * task_documents(shape), .T = net->T, .D = s->config.net.dim, .links = net->links};
    if (!shape->reading.visit && net->T == shape->T) d.height = shape->height, d.width = shape->width;
    int64_t test = task_length(shape, SPLIT_TEST), longest = test > shape->T ? test : shape->T, nodes;
    bool differ = test != shape->T || shape->second.T;
    if (shape->second.T > longest) longest = shape->second.T;
    *fitted = s->model;
    if (fitted->model->nodes && differ) TRY(fitted->model->nodes(fitted->inst, longest, &nodes, e));
    return model_fit(fitted, &d, e);
}

/* Fits the model to the lengths that are known before the run: of training, of test, and of a second batch. */
static enum status fit_lengths(struct setup *s, struct error *e) {
    struct net_shape train = setup_net_shape(&s->spec, SPLIT_TRAIN), test = setup_net_shape(&s->spec, SPLIT_TEST),
                     second = train;
    TRY(setup_fit(&s->spec, &test, &s->shapes.eval_model, e));
    second.B = setup_second_rows(&s->spec);
    second.T = s->spec.task.shape.second.T;
    if (second.T) TRY(setup_fit(&s->spec, &second, &s->shapes.second_model, e));
    return setup_fit(&s->spec, &train, &s->shapes.model, e);
}

struct net_shape setup_net_shape(const struct spec *s, enum split split) {
    const struct task_shape *t = &s->task.shape;
    enum readout readout = s->task.shape.reading.one_vector ? READOUT_DECODED
                           : t->per_sequence                ? READOUT_SEQUENCE
                                                            : READOUT_POSITIONS;
    bool image = t->height > 0 && !t->reading.visit; /* the image is read row by row */
    return (struct net_shape){.B = s->config.batch,
                              .T = task_length(t, split),
                              .vocab_in = t->vocab_in,
                              .channels = t->channels,
                              .documents = t->reading.documents,
                              .links = t->links,
                              .vocab_out = t->vocab_out,
                              .height = image ? t->height : 0,
                              .width = image ? t->width : 0,
                              .reordered = t->reading.visit != NULL,
                              .readout = readout};
}

int64_t setup_second_rows(const struct spec *s) {
    if (!s->task.shape.second.T) return 0;
    return s->config.batch > 10 ? s->config.batch / 10 : 1;
}

/* Makes the content of the file from which a run starts a part of its identity, but not the file's path. */
static enum status resolve_start(struct config *c, struct error *e) {
    char hash[HASH_HEX], *bytes;
    size_t size;
    struct error why;
    if (!*c->from) return ST_OK;
    if (file_read_hashed(c->from, machine_memory_bytes() / 2, &bytes, &size, hash, &why) != ST_OK)
        return fail(e, ST_DATA, "--from: %.900s", why.text);
    free(bytes);
    if (*c->from_xxh3 && strcmp(hash, c->from_xxh3) != 0)
        return fail(e, ST_DATA,
                    "--from: the XXH3-128 of %s is %s, expected %.40s: it is not the file that the run "
                    "starts from",
                    c->from, hash, c->from_xxh3);
    memcpy(c->from_xxh3, hash, sizeof hash);
    return ST_OK;
}

/* Computes the steps of an epoch and of the run from the flags, and writes them to shapes and flags. */
static void set_length(struct setup *s) {
    struct run_length length = config_length(&s->spec.config, s->spec.task.shape.examples[SPLIT_TRAIN]);
    s->shapes.steps_per_epoch = length.steps_per_epoch;
    s->shapes.schedule_steps = length.schedule_steps;
    s->shapes.steps = length.steps;
    s->shapes.eval_every = length.eval_every;
}

/* Refuses a first rate below the cosine's lowest rate, since the rate would only rise. If the rate changes only between
 * epochs, refuses a warm-up that ends inside an epoch. */
static enum status check_schedule(const struct config *c, const struct shapes *s, struct error *e) {
    char name[OPTION_TEXT + 1];
    option_format_value(option_find(config_options, "schedule"), c, name, sizeof name);
    const struct schedule schedule = setup_schedule(c, s);
    bool rises = schedule_change(schedule.kind) != RATE_FIXED && schedule.lr < schedule.lr_min;
    if (rises && schedule.lr_min != c->lr_min)
        return fail(e, ST_USAGE, "--lr %g is below %g, to which the cosine of --schedule %s would rise", schedule.lr,
                    schedule.lr_min, name);
    if (rises)
        return fail(e, ST_USAGE, "--lr %g is below --lr-min %g, to which the cosine would rise; lower --lr-min",
                    schedule.lr, schedule.lr_min);
    int64_t spare = c->warmup % s->steps_per_epoch, whole = c->warmup - spare + s->steps_per_epoch;
    if (schedule_change(schedule.kind) != RATE_PER_EPOCH || spare == 0) return ST_OK;
    return fail(e, ST_USAGE,
                "--schedule %s changes the rate between epochs alone, and --warmup %" PRId64
                " is no whole number of epochs "
                "of %" PRId64 " steps; take --warmup %" PRId64 " or --schedule cosine",
                name, c->warmup, s->steps_per_epoch, whole);
}

static enum status make_tables(struct setup *s, struct error *e) {
    TRY(arena_reserve(&s->shapes.host, TASK_TABLE_BYTES, e));
    enum status status = task_open(&s->spec.task, (uint64_t)s->spec.config.seed, &s->shapes.host, e);
    if (status != ST_OK) arena_free(&s->shapes.host);
    return status;
}

enum status setup_resolve(struct setup *s, struct error *e) {
    struct config *c = &s->spec.config;
    TRY(resolve_start(c, e));
    TRY(make_tables(s, e));
    TRY(setup_match(&s->spec, e));
    TRY(check_fit(&s->spec, e));
    TRY(leave_out_idle(s, e));
    TRY(fit_lengths(s, e));
    TRY(config_check_length(c, s->spec.task.shape.examples[SPLIT_TRAIN], e));
    set_length(s);
    TRY(curriculum_check(&s->spec.task, c->curriculum, e));
    TRY(check_schedule(c, &s->shapes, e));
    TRY(setup_numerics(&s->spec, &s->shapes, s->id.numerics, sizeof s->id.numerics, e));
    TRY(identify(s, e));
    return name_model(s, e);
}

enum status setup_stop_after(struct setup *s, int64_t steps, struct error *e) {
    s->spec.config.budget = 0;
    s->spec.config.stop_after = steps;
    set_length(s);
    return identify(s, e);
}

enum status setup_open(struct setup *s, struct error *e) {
    char text[CONFIG_TEXT];
    if (s->shapes.host.base) return ST_OK;
    TRY(make_tables(s, e));
    TRY(setup_config_text(&s->spec, text, e));
    return keep(&s->id.config_text, text, e);
}

void setup_close(struct setup *s) {
    arena_free(&s->shapes.host);
    free(s->id.config_text);
    s->id.config_text = NULL;
}

struct setup *setup_again(const struct setup *s, const struct config *c, struct error *e) {
    enum status status = ST_OK;
    struct setup *other = malloc(sizeof *other);
    if (!other) {
        fail(e, ST_MEMORY, "no memory for a run");
        return NULL;
    }
    *other = *s;
    other->id.text = other->id.config_text = NULL;
    other->shapes.host = (struct arena){0};
    other->spec.task.name = other->spec.task.label;
    other->spec.config.seed = c->seed;
    other->spec.config.lr = c->lr;
    if (c->lr == s->spec.config.lr) {
        status = identify_seed(other, s->id.text, e);
    } else {
        status = text_copy(c->profile, other->spec.config.profile, sizeof other->spec.config.profile, e);
        if (status == ST_OK) status = check_schedule(&other->spec.config, &other->shapes, e);
        if (status == ST_OK) status = identify(other, e);
    }
    setup_close(other);
    if (status == ST_OK) return other;
    setup_free(other);
    return NULL;
}

void setup_free(struct setup *s) {
    if (!s) return;
    setup_close(s);
    free(s->id.text);
    free(s);
}

struct schedule setup_schedule(const struct config *c, const struct shapes *s) {
    static const struct {
        double floor;
        int64_t epochs;
    } own[] = {
#define ROW(id, name, changes, floor, epochs, rate, help) {floor, epochs},
        SCHEDULES(ROW)
#undef ROW
    };
    double fixed = own[c->schedule].floor, floor = fixed > 0 ? fixed : c->lr_min_share * c->lr;
    int64_t epochs = own[c->schedule].epochs;
    return (struct schedule){.kind = (enum schedule_kind)c->schedule,
                             .lr = c->lr,
                             .lr_min = floor > 0 ? floor : c->lr_min,
                             .warmup = c->warmup,
                             .warmup_least = c->warmup_least,
                             .total = epochs > 0 ? epochs * s->steps_per_epoch : s->schedule_steps,
                             .steps_per_epoch = s->steps_per_epoch};
}
