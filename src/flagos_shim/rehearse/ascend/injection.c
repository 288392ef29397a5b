/* Failures on demand, and the message that goes with the last failure.
 *
 * FLAGOS_SHIM_REHEARSE_FAIL is a comma-separated list of entries:
 *   name:code      every call of the function `name` returns `code`
 *   name:code@N    only the N-th call does (counted in this process from 1)
 *   name:code@N+   the N-th call and all after it do
 * The variable is read at each call, so that a program may set and clear it while it runs; calls are counted
 * anew when its text changes.  Names are those of the ACL and HCCL C interfaces (aclrtMalloc, HcclAllReduce, ...);
 * entries that name operators are dealt with in failures.py.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rehearse.h"

static __thread char pending[512], handed_out[512];

void rehearse_message(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(pending, sizeof pending, format, arguments);
    va_end(arguments);
}
/* As CANN does, a message is handed out once: a later failure must not carry the text of an earlier one. */
const char *aclGetRecentErrMsg(void) {
    if (!pending[0]) return NULL;
    memcpy(handed_out, pending, sizeof pending);
    pending[0] = 0;
    return handed_out;
}

/* What CANN's layers say beside the more common codes; torch_npu recognises EL0004 as out of memory. */
static const struct { int code; const char *text; } WORDING[] = {
    {107000, "EE1001: The argument is invalid. Reason: parameter check failed"},
    {107001, "EE1001: The argument is invalid. Reason: the device id is invalid"},
    {107002, "EE1001: The argument is invalid. Reason: the context is a null pointer"},
    {107003, "EE1001: The argument is invalid. Reason: the stream is not in the current context"},
    {207000, "EE1006: The feature is not supported"},
    {207001, "EL0004: Failed to allocate memory. Possible Cause: Available memory is insufficient."},
    {507011, "EZ9999: Inner Error! Model execution failed."},
    {507014, "EZ9999: Inner Error! The aicore execution times out."},
    {507015, "EZ9999: Inner Error! The error from device(chipId:0, dieId:0), aicore exception."},
    {507018, "EZ9999: Inner Error! The error from device(chipId:0, dieId:0), aicpu exception."},
    {507035, "EZ9999: Inner Error! The error from device(chipId:0, dieId:0), vector core exception."},
    {507046, "EE1002: Stream synchronize timeout"},
    {507899, "EZ9999: Inner Error! Driver internal error."},
    {561103, "EZ9999: Inner Error! The kernel of the operator was not found."},
};

enum { MAX_ENTRIES = 32 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char counted_for[1024];
static long calls[MAX_ENTRIES];

static const char *wording_of(int code) {
    for (size_t i = 0; i < sizeof WORDING / sizeof *WORDING; i++)
        if (WORDING[i].code == code) return WORDING[i].text;
    return "EZ9999: Inner Error!";
}

/* The code with which every operator that this thread runs now fails; set by failures.py around torch_npu's kernel. */
static __thread int operator_code;
void rehearse_fail_operator(int code) { operator_code = code; }
/* What an operator of the library answers. None of them computes, so without a code it is one that has no kernel. */
int rehearse_operator(const char *name) {
    int code = operator_code ? operator_code : 561103;
    rehearse_message("%s\n        (rehearsed failure of %s)", wording_of(code), name);
    return code;
}
int rehearse_operator_fails(void) { return operator_code; }

/* While the runtime's own Python files call torch_npu, nothing fails and no call is counted (notice.py). */
static __thread int suspended;
void rehearse_suspend_failures(int on) { suspended = on; }

int rehearse_injected(const char *function) {
    if (suspended) return 0;
    const char *spec = getenv("FLAGOS_SHIM_REHEARSE_FAIL");
    if (!spec || !*spec) return 0;
    int code = 0, entry = 0;
    size_t length = strlen(function);
    pthread_mutex_lock(&lock);
    if (strncmp(counted_for, spec, sizeof counted_for - 1)) {
        snprintf(counted_for, sizeof counted_for, "%s", spec);
        memset(calls, 0, sizeof calls);
    }
    for (const char *at = spec; at && *at && entry < MAX_ENTRIES; at = strchr(at, ','), at = at ? at + 1 : NULL, entry++) {
        at += strspn(at, " ");
        if (strncmp(at, function, length) || at[length] != ':') continue;
        char *rest;
        int wanted = (int)strtol(at + length + 1, &rest, 10);
        long call = ++calls[entry], first = 1;
        int only = 0;
        if (*rest == '@') {
            first = strtol(rest + 1, &rest, 10);
            only = *rest != '+';
        }
        if (!code && (only ? call == first : call >= first)) code = wanted;
    }
    pthread_mutex_unlock(&lock);
    if (!code) return 0;
    rehearse_message("%s\n        (rehearsed failure of %s)", wording_of(code), function);
    return code;
}
