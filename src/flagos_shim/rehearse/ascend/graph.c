/* Graph operators: the few that torch_npu runs past its dispatcher.  Any other is unknown here, as it is on a CANN
 * release that lacks it, and torch_npu raises its own error for it.
 */
#include <stdlib.h>
#include <string.h>
#include "rehearse.h"

typedef struct { int type, rank; int64_t dims[8]; } TensorDesc;
typedef struct { void *data; size_t bytes; } DataBuffer;
void *aclCreateTensorDesc(int type, int dims_count, const int64_t *dims, int format) {
    (void)format;
    TensorDesc *d = calloc(1, sizeof *d);
    d->type = type;
    d->rank = dims_count < 8 ? dims_count : 8;
    memcpy(d->dims, dims, d->rank * sizeof *dims);
    return d;
}
void aclDestroyTensorDesc(const void *desc) { free((void *)desc); }
void *aclCreateDataBuffer(void *data, size_t bytes) { DataBuffer *b = malloc(sizeof *b); *b = (DataBuffer){data, bytes}; return b; }
aclError aclDestroyDataBuffer(const void *buffer) { free((void *)buffer); return 0; }
static size_t acl_item_size(int type) {
    static const unsigned char sizes[] = {4, 2, 1, 4, 1, 0, 2, 2, 4, 8, 8, 8, 1};
    return type == 27 ? 2 : type >= 0 && type < (int)sizeof sizes ? sizes[type] : 0;
}
/* Constant padding, one axis a call; before[axis] items of padding come first on each axis. */
static void pad_axis(char *out, const char *in, const TensorDesc *od, const TensorDesc *id, const int64_t *before, int axis, size_t item) {
    size_t out_step = item, in_step = item;
    for (int a = axis + 1; a < id->rank; a++) { out_step *= od->dims[a]; in_step *= id->dims[a]; }
    out += before[axis] * out_step;
    if (axis + 1 >= id->rank) { memcpy(out, in, (id->rank ? id->dims[axis] : 1) * item); return; }
    for (int64_t i = 0; i < id->dims[axis]; i++) pad_axis(out + i * out_step, in + i * in_step, od, id, before, axis + 1, item);
}
aclError aclopCompileAndExecuteV2(const char *op, int inputs, TensorDesc **input_desc, DataBuffer **input, int outputs, TensorDesc **output_desc, DataBuffer **output) {
    CALL(); (void)outputs;
    if (rehearse_operator_fails()) return rehearse_operator(op);
    DataBuffer *out = output[0];
    size_t item = acl_item_size(output_desc[0]->type);
    if (!strcmp(op, "ZerosLike")) {
        memset(out->data, 0, out->bytes);
    } else if (!strcmp(op, "Fill") && item && inputs == 2 && input[1]->bytes >= item) {
        for (size_t at = 0; at + item <= out->bytes; at += item) memcpy((char *)out->data + at, input[1]->data, item);
    } else if ((!strcmp(op, "Identity") || !strcmp(op, "TensorMove")) && input[0]->bytes <= out->bytes) {
        memmove(out->data, input[0]->data, input[0]->bytes);
    } else if (!strcmp(op, "PadV3") && inputs >= 2 && item && input_desc[0]->rank) {
        int64_t before[8];
        for (int a = 0; a < input_desc[0]->rank; a++)
            before[a] = input_desc[1]->type == 3 ? ((int32_t *)input[1]->data)[2 * a] : ((int64_t *)input[1]->data)[2 * a];
        memset(out->data, 0, out->bytes);  /* torch_npu's own callers pad with zero */
        pad_axis(out->data, input[0]->data, output_desc[0], input_desc[0], before, 0, item);
    } else {
        rehearse_message("EZ3002: Optype [%s] of Ops kernel is unsupported.", op);
        return ACL_BAD_OPERATOR;
    }
    return 0;
}
aclError aclopCompileAndExecute(const char *op, int inputs, TensorDesc **input_desc, DataBuffer **input, int outputs, TensorDesc **output_desc, DataBuffer **output) {
    return aclopCompileAndExecuteV2(op, inputs, input_desc, input, outputs, output_desc, output);
}
