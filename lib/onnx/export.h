// A trained model as an ONNX file, for other people's tools.
#ifndef ADAM_ONNX_EXPORT_H
#define ADAM_ONNX_EXPORT_H

#include "run/checkpoint.h"

struct error;

// The graph takes "pictures", N x channels x height x width floats as they were decoded (0 to 255,
// before the operations of the model's input, which are a part of it), and gives "scores", N x
// classes probabilities. Names of classes and the model's text are in its metadata ("classes", a
// JSON list; "model"). Opset 17.
// STATUS_DATA: a layer or an operation has no equal in ONNX, which err names. STATUS_CANTCREATE,
// STATUS_IO.
int onnx_export(const struct checkpoint *checkpoint, const char *path, bool force,
                struct error *err);

#endif
