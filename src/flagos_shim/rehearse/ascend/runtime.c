/* A host-memory Ascend runtime: the part of the ACL C interface that the real torch_npu plugin calls, so that the
 * plugin starts, allocates, copies and accounts memory on a machine without an NPU.  It computes nothing: see the
 * Python files beside it.  This file: process, devices, streams, events.  Every call is done at once.
 */
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "rehearse.h"

#define CANN_RELEASE "8.5.0"
#define DRIVER_RELEASE "25.5.0"

static __thread int current_device;
static int visible[MAX_DEVICES], visible_count;
static pthread_once_t devices_read = PTHREAD_ONCE_INIT;

static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}
int rehearse_chip_count(void) {
    long n = number("FLAGOS_SHIM_REHEARSE_DEVICES", 2);
    return n < 0 ? 0 : n > MAX_DEVICES ? MAX_DEVICES : (int)n;
}
size_t rehearse_chip_memory(void) { return (size_t)number("FLAGOS_SHIM_REHEARSE_MEMORY_MB", 1024) << 20; }
double rehearse_hccl_timeout(void) {
    const char *text = getenv("FLAGOS_SHIM_REHEARSE_HCCL_TIMEOUT");
    return text && *text ? atof(text) : 60;
}

/* ASCEND_RT_VISIBLE_DEVICES as CANN reads it: digits and commas; reading stops at the first other character and at
 * the first chip that does not exist; a list that does not ascend gives no device at all. */
static void read_devices(void) {
    const char *at = getenv("ASCEND_RT_VISIBLE_DEVICES");
    int chips = rehearse_chip_count();
    if (!at) {
        for (visible_count = 0; visible_count < chips; visible_count++) visible[visible_count] = visible_count;
        return;
    }
    while (isdigit((unsigned char)*at)) {
        char *rest;
        long chip = strtol(at, &rest, 10);
        if (chip >= chips) return;
        if (visible_count && chip <= visible[visible_count - 1]) { visible_count = 0; return; }
        visible[visible_count++] = (int)chip;
        if (*rest != ',') return;
        at = rest + 1;
    }
}
int rehearse_device_count(void) { pthread_once(&devices_read, read_devices); return visible_count; }
int rehearse_physical(int logical) { return logical >= 0 && logical < rehearse_device_count() ? visible[logical] : -1; }
int rehearse_current(void) { return current_device; }

/* ---- process and device ---- */
NOOP(aclInit) NOOP(aclFinalize)
const char *aclrtGetSocName(void) {
    const char *name = getenv("FLAGOS_SHIM_REHEARSE_CHIP");
    return name && *name ? name : "Ascend910B1";
}
aclError aclrtGetDeviceCount(uint32_t *count) { CALL(); *count = (uint32_t)rehearse_device_count(); return 0; }
aclError aclrtGetDevice(int32_t *device) { CALL(); *device = current_device; return 0; }
aclError aclrtSetDevice(int32_t device) {
    CALL();
    if (rehearse_physical(device) < 0) {
        rehearse_message("EE1001: The argument is invalid. Reason: device id %d is not in [0, %d)", device, rehearse_device_count());
        return ACL_INVALID_DEVICE;
    }
    current_device = device;
    return 0;
}
NOOP(aclrtResetDevice) NOOP(aclrtResetDeviceForce) NOOP(aclrtDeviceEnablePeerAccess) NOOP(aclrtSetDeviceSatMode)
NOOP(aclrtSetCurrentContext) NOOP(aclrtSynchronizeDevice) NOOP(aclrtSynchronizeDeviceWithTimeout)
NOOP(aclrtSetSysParamOpt) NOOP(aclrtCtxSetSysParamOpt) NOOP(aclSetCompileopt)
NOOP(aclrtPeekAtLastError) NOOP(aclrtGetLastError)
aclError aclrtGetCurrentContext(void **context) {
    CALL();
    static int contexts[MAX_DEVICES];
    *context = &contexts[current_device];
    return 0;
}
aclError aclrtDeviceCanAccessPeer(int32_t *can, int32_t a, int32_t b) { (void)a; (void)b; *can = 1; return 0; }
aclError aclrtDeviceGetBareTgid(int32_t *pid) { *pid = getpid(); return 0; }
aclError aclrtGetSysParamOpt(int option, int64_t *value) { (void)option; *value = 0; return 0; }
aclError aclrtGetPrimaryCtxState(int32_t device, uint32_t *flags, int32_t *active) {
    (void)device;
    if (flags) *flags = 0;
    *active = 1;
    return 0;
}
typedef struct { int32_t cube, vector, aicpu, memory; void *more; } Utilization;  /* percent */
aclError aclrtGetDeviceUtilizationRate(int32_t device, Utilization *out) {
    CALL(); (void)device;
    out->cube = out->vector = 37;
    out->aicpu = 3;
    out->memory = 20;
    return 0;
}

/* What a device is made of; torch_npu shows it in get_device_properties(). The counts are those of an Ascend 910B1. */
aclError aclrtGetDeviceInfo(uint32_t device, int attribute, int64_t *value) {
    CALL();
    if (rehearse_physical((int)device) < 0) return ACL_INVALID_DEVICE;
    switch (attribute) {
        case 1: *value = 6; break;                      /* AI CPUs */
        case 101: case 102: *value = 24; break;         /* AI cores, cube cores */
        case 201: *value = 48; break;                   /* vector cores */
        case 202: *value = 32; break;                   /* threads of a warp */
        case 204: *value = 192 << 10; break;            /* bytes of local memory of a vector core */
        case 301: *value = (int64_t)rehearse_chip_memory(); break;
        case 302: *value = 192 << 20; break;            /* bytes of L2 cache */
        case 402: *value = rehearse_physical((int)device); break;
        default: *value = 0;
    }
    return 0;
}
aclError aclGetDeviceCapability(uint32_t device, int what, int64_t *value) {
    static const int attribute[] = {101, 201, 302};
    return what < 0 || what > 2 ? ACL_INVALID_PARAM : aclrtGetDeviceInfo(device, attribute[what], value);
}
aclError aclrtDeviceGetUuid(int32_t device, unsigned char uuid[16]) {
    CALL();
    int chip = rehearse_physical(device);
    if (chip < 0) return ACL_INVALID_DEVICE;
    memcpy(uuid, "rehearsed-chip-", 15);
    uuid[15] = (unsigned char)chip;
    return 0;
}

/* The releases of CANN's packages and of the driver; torch_npu chooses among its code paths by them. */
typedef struct { char version[128], major[64], minor[64], release[64], patch[64], reserved[128]; } PackageVersion;
enum { PACKAGE_DRIVER = 7 };
aclError aclsysGetCANNVersion(int package, PackageVersion *out) {
    CALL();
    memset(out, 0, sizeof *out);
    snprintf(out->version, sizeof out->version, "%s", package == PACKAGE_DRIVER ? DRIVER_RELEASE : CANN_RELEASE);
    return 0;
}
aclError aclsysGetVersionStr(char *package, char *out) {
    CALL();
    strcpy(out, !strcmp(package, "driver") ? DRIVER_RELEASE : CANN_RELEASE);
    return 0;
}

/* ---- streams and events: work is done at once, so both are always complete ---- */
typedef struct { double milliseconds; } Event;
typedef struct { int32_t id; uint32_t overflow; } Stream;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6; }

aclError aclrtCreateStreamWithConfig(void **stream, uint32_t priority, uint32_t flag) {
    CALL(); (void)priority; (void)flag;
    static int32_t serial;
    Stream *s = calloc(1, sizeof *s);
    if (!s) return ACL_OUT_OF_MEMORY;
    s->id = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
    *stream = s;
    return 0;
}
aclError aclrtCreateStream(void **stream) { CALL(); return aclrtCreateStreamWithConfig(stream, 0, 0); }
aclError aclrtDestroyStream(void *stream) { free(stream); return 0; }
aclError aclrtDestroyStreamForce(void *stream) { free(stream); return 0; }
NOOP(aclrtSynchronizeStream) NOOP(aclrtSynchronizeStreamWithTimeout) NOOP(aclrtStreamWaitEvent) NOOP(aclrtSetStreamFailureMode)
NOOP(aclrtSetStreamAttribute) NOOP(aclrtSetOpWaitTimeout) NOOP(aclrtSetOpExecuteTimeOut)
NOOP(aclrtSubscribeReport) NOOP(aclrtUnSubscribeReport) NOOP(aclrtLaunchCallback)
aclError aclrtStreamQuery(void *stream, int *status) { CALL(); (void)stream; *status = 0; return 0; }
aclError aclrtStreamGetId(void *stream, int32_t *id) { *id = stream ? ((Stream *)stream)->id : 0; return 0; }
/* Whether a stream looks for overflows, which chips before the Ascend 910B1 are told at their start; none is looked for. */
static Stream default_stream;
aclError aclrtSetStreamOverflowSwitch(void *stream, uint32_t flag) {
    CALL(); (stream ? (Stream *)stream : &default_stream)->overflow = flag; return 0;
}
aclError aclrtGetStreamOverflowSwitch(void *stream, uint32_t *flag) {
    CALL(); *flag = (stream ? (Stream *)stream : &default_stream)->overflow; return 0;
}

aclError aclrtCreateEvent(void **event) { CALL(); *event = calloc(1, sizeof(Event)); return *event ? 0 : ACL_OUT_OF_MEMORY; }
aclError aclrtCreateEventWithFlag(void **event, uint32_t flag) { CALL(); (void)flag; return aclrtCreateEvent(event); }
aclError aclrtCreateEventExWithFlag(void **event, uint32_t flag) { CALL(); (void)flag; return aclrtCreateEvent(event); }
aclError aclrtDestroyEvent(void *event) { free(event); return 0; }
aclError aclrtRecordEvent(void *event, void *stream) { CALL(); (void)stream; ((Event *)event)->milliseconds = now(); return 0; }
NOOP(aclrtResetEvent) NOOP(aclrtSynchronizeEvent)
aclError aclrtQueryEvent(void *event, int *status) { CALL(); (void)event; *status = 0; return 0; }
aclError aclrtQueryEventStatus(void *event, int *status) { CALL(); (void)event; *status = 1; return 0; }
aclError aclrtQueryEventWaitStatus(void *event, int *status) { CALL(); (void)event; *status = 0; return 0; }
aclError aclrtEventElapsedTime(float *milliseconds, void *start, void *end) {
    CALL();
    *milliseconds = (float)(((Event *)end)->milliseconds - ((Event *)start)->milliseconds);
    return 0;
}

/* ---- profiling and logging: accepted, nothing recorded ---- */
NOOP(aclprofInit) NOOP(aclprofFinalize) NOOP(aclprofStart) NOOP(aclprofStop) NOOP(aclprofSetConfig)
void aclAppLog(void) {}
