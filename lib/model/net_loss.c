// The cross-entropy of the output layer, with smoothed targets, weighted classes and mixed labels.
// It is linear in the targets: the loss of a mixture is the mixture of those of both labels.
#include <math.h>
#include <string.h>

#include "model/net_inside.h"

// No probability is believed to be less than the smallest float. What is no number stays none.
#define LEAST 0x1p-126

static double log_loss(float probability) {
    double believed = (double)probability < LEAST ? LEAST : (double)probability;
    return believed > 0 ? -log(believed) : NAN;
}

// -ln(1 - sigmoid(x)), whose digits the sigmoid does not have where it is next to 1.
static double softplus(double x) {
    return (x < 0 ? 0 : x) + log1p(exp(-fabs(x)));
}

// What the scores of a sample of one label are to be, and how much each counts.
struct targets {
    bool one_vs_all;
    int classes;
    int first, end; // of these, those whose scores the net has: all, but in a partition
    // Those of the label 1, the others 0; or, in training, as the output layer smooths them.
    float label, others;
    const float *weights; // of classes, in training; NULL: all count alike
};

static struct targets targets_of(const struct net *net) {
    const struct layer *layer = model_output(net->model);
    bool trains = net->mode == NET_TRAIN, one_vs_all = layer->type->goal == GOAL_CLASSES;
    int classes = layer->whole.c;
    float share = trains ? layer->smoothing : 0;
    float others = share / (one_vs_all ? 2 : (float)classes);
    return (struct targets){
        .one_vs_all = one_vs_all,
        .classes = classes,
        .first = layer->region.c0,
        .end = layer->region.c1,
        .label = 1 - share + others,
        .others = others,
        .weights = trains ? layer->class_weights.at : NULL,
    };
}

// What class c of a sample of this label counts: with softmax as that class, "each class's part of
// the loss", as in PyTorch; one against all, as the label.
static float weight_of(const struct targets *t, int c, int label) {
    return t->weights ? t->weights[t->one_vs_all ? label : c] : 1;
}

// What the targets of a sample count together: 1 where all classes count alike.
static float weight_of_all(const struct targets *t, int label) {
    float sum = 0;
    if (!t->weights || t->one_vs_all)
        return weight_of(t, label, label);
    for (int c = 0; t->others > 0 && c < t->classes; c++)
        sum += c == label ? 0 : t->weights[c];
    return t->label * t->weights[label] + t->others * sum;
}

// --- labels -----------------------------------------------------------------------------

void net_mixed(struct net *net, const int32_t *other, const float *share) {
    net->other = other;
    net->share = share;
}

static bool is_label(const struct net *net, int label) {
    return label >= 0 && label < model_output(net->model)->whole.c;
}

// A sample's two labels. The second has no part in what was not mixed.
struct mixed_label {
    int label, other;
    float share;
};

static struct mixed_label label_of(const struct net *net, const int32_t *labels, int i) {
    bool mixed = net->share && net->share[i] < 1 && is_label(net, net->other[i]);
    return (struct mixed_label){labels[i], mixed ? net->other[i] : labels[i],
                                mixed ? net->share[i] : 1};
}

// --- the loss ---------------------------------------------------------------------------

const float *net_terms(const struct net *net) {
    bool one_vs_all = model_goal(net->model) == GOAL_CLASSES;
    return one_vs_all ? net_output_node(net)->pass.kept : net_scores(net);
}

// Where its target is 0 a score costs nothing, but for a one-vs-all output.
double net_term_loss(bool one_vs_all, float term, float target) {
    if (!one_vs_all)
        return target > 0 ? (double)target * log_loss(term) : 0;
    double loss = target > 0 ? (double)target * softplus(-(double)term) : 0;
    return target < 1 ? loss + (double)(1 - target) * softplus((double)term) : loss;
}

static double label_loss(const struct targets *t, const float *terms, int label) {
    double loss = 0;
    if (label >= t->first && label < t->end)
        loss = (double)weight_of(t, label, label) *
               net_term_loss(t->one_vs_all, terms[label - t->first], t->label);
    for (int c = t->first; (t->one_vs_all || t->others > 0) && c < t->end; c++)
        if (c != label)
            loss += (double)weight_of(t, c, label) *
                    net_term_loss(t->one_vs_all, terms[c - t->first], t->others);
    return loss;
}

double net_loss(const struct net *net, const int32_t *labels) {
    if (!model_output(net->model)->type->output)
        return 0;
    if (net_has_targets(net))
        return net_target_loss(net, labels);
    const float *terms = net_terms(net);
    const struct targets targets = targets_of(net);
    double loss = 0;
    for (int i = 0; i < net->n; i++, terms += targets.end - targets.first) {
        struct mixed_label of = label_of(net, labels, i);
        if (!is_label(net, of.label))
            continue;
        loss += (double)of.share * label_loss(&targets, terms, of.label);
        if (of.share < 1)
            loss += (double)(1 - of.share) * label_loss(&targets, terms, of.other);
    }
    return loss;
}

// --- its error gradients ----------------------------------------------------------------

// Adds scale * (score - target), "(t - a) * F'(a)" of Adam 2.2 with the cross-entropy's slope, in
// which F' cancels; each target as much as its class counts, and the score as much as all of them.
static void add_errors(const struct targets *t, float *error, const float *score, int label,
                       float scale) {
    float all = weight_of_all(t, label);
    for (int c = t->first; c < t->end; c++) {
        float target = c == label ? t->label : t->others;
        error[c - t->first] +=
            scale * (all * score[c - t->first] - weight_of(t, c, label) * target);
    }
}

void net_output_error(struct net *net, const int32_t *labels, float scale) {
    if (net_has_targets(net)) {
        net_target_error(net, labels, scale);
        return;
    }
    const struct pass *pass = &net_output_node(net)->pass;
    const struct targets targets = targets_of(net);
    size_t classes = (size_t)(targets.end - targets.first);
    memset(pass->dy, 0, (size_t)net->n * classes * sizeof *pass->dy);
    for (int i = 0; i < net->n; i++) {
        struct mixed_label of = label_of(net, labels, i);
        const float *score = pass->y + (size_t)i * classes;
        float *error = pass->dy + (size_t)i * classes;
        if (is_label(net, of.label))
            add_errors(&targets, error, score, of.label, scale * of.share);
        if (is_label(net, of.label) && of.share < 1)
            add_errors(&targets, error, score, of.other, scale * (1 - of.share));
    }
}
