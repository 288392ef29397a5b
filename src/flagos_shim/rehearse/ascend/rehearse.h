/* Shared by the parts of the host-memory Ascend runtime.
 *
 * Environment (read here and nowhere else in C):
 *   FLAGOS_SHIM_REHEARSE_DEVICES       number of chips in the machine (2)
 *   FLAGOS_SHIM_REHEARSE_MEMORY_MB     memory of each chip in MiB (1024)
 *   FLAGOS_SHIM_REHEARSE_CHIP          name of the chip (Ascend910B1)
 *   FLAGOS_SHIM_REHEARSE_FAIL          injected failures, see injection.c
 *   FLAGOS_SHIM_REHEARSE_HCCL_TIMEOUT  seconds a rank waits for its peers (60)
 *   ASCEND_RT_VISIBLE_DEVICES          which chips this process sees, as CANN reads it
 */
#ifndef FLAGOS_SHIM_REHEARSE_H
#define FLAGOS_SHIM_REHEARSE_H
#include <stddef.h>
#include <stdint.h>

typedef int aclError;
enum { MAX_DEVICES = 64 };
enum {
    ACL_INVALID_PARAM = 107000, ACL_INVALID_DEVICE = 107001, ACL_CONTEXT_NULL = 107002,
    ACL_OUT_OF_MEMORY = 207001, ACL_NOT_SUPPORTED = 207000, ACL_BAD_OPERATOR = 500002,
};

/* Leave a message for aclGetRecentErrMsg, which torch_npu adds to the text of the exception. */
void rehearse_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The code that FLAGOS_SHIM_REHEARSE_FAIL asks for at this call of `function`, or 0. */
int rehearse_injected(const char *function);

/* The same for an operator of the operator library, and whether failures.py makes it fail now. */
int rehearse_operator(const char *name);
int rehearse_operator_fails(void);

int rehearse_chip_count(void);       /* chips in the machine */
int rehearse_device_count(void);     /* chips this process sees */
int rehearse_physical(int logical);  /* the chip behind a visible device, or -1 */
int rehearse_current(void);          /* the calling thread's device, as this process numbers it */
size_t rehearse_chip_memory(void);   /* bytes */
double rehearse_hccl_timeout(void);  /* seconds */

#define CALL() do { int injected_ = rehearse_injected(__func__); if (injected_) return injected_; } while (0)
#define NOOP(name) aclError name(void) { CALL(); return 0; }
#endif
