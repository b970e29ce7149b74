// An ONNX graph in the making: nodes and constants, in memory that lives as long as it does.
// https://github.com/onnx/onnx/blob/v1.12.0/docs/IR.md. Inside lib/onnx only.
//
// That memory ran out is remembered, so that a writer need not ask after each word: what is given
// from then on is of no use, and graph_pack fails.
#ifndef ADAM_ONNX_GRAPH_H
#define ADAM_ONNX_GRAPH_H

#include <stddef.h>
#include <stdint.h>

struct error;
struct graph;
struct graph_node;

enum { GRAPH_OPSET = 17, GRAPH_RANK = 6 };

struct graph *graph_open(void); // NULL when out of memory
void graph_close(struct graph *graph);

// A kept text.
const char *graph_format(struct graph *graph, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// A node of an operator, with one output of this name, which is kept.
struct graph_node *graph_node(struct graph *graph, const char *op, const char *output);
const char *graph_output(const struct graph_node *node);
void graph_input(struct graph *graph, struct graph_node *node, const char *name);
void graph_int(struct graph *graph, struct graph_node *node, const char *name, int64_t value);
void graph_ints(struct graph *graph, struct graph_node *node, const char *name,
                const int64_t *values, size_t count);
void graph_float(struct graph *graph, struct graph_node *node, const char *name, float value);

// Constants, whose name is kept and given back; `values` outlive the graph.
const char *graph_floats(struct graph *graph, const char *name, const int64_t *dims, size_t rank,
                         const float *values);
const char *graph_numbers(struct graph *graph, const char *name, const int64_t *values,
                          size_t count);
// One number.
const char *graph_scalar(struct graph *graph, const char *name, float value);
// Memory for floats that are made on the way; NULL when it is out.
float *graph_room(struct graph *graph, size_t floats);

// What goes in and what comes out: N x dims, N being any number.
void graph_takes(struct graph *graph, const char *name, const int64_t *dims, size_t rank);
void graph_gives(struct graph *graph, const char *name, const int64_t *dims, size_t rank);
// A pair of texts beside the graph.
void graph_note(struct graph *graph, const char *key, const char *value);

// The whole model, packed: *size bytes to be freed with free(). STATUS_IO: out of memory.
// STATUS_DATA: it is larger than what protocol buffers hold.
int graph_pack(struct graph *graph, const char *name, uint8_t **bytes, size_t *size,
               struct error *err);

#endif
