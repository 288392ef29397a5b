/* HCCL, Ascend's collective library, over POSIX shared memory: the ranks are processes on this machine.
 * Every call is synchronous.  A rank that waits longer than FLAGOS_SHIM_REHEARSE_HCCL_TIMEOUT seconds (60) for its peers fails
 * with HCCL_E_TIMEOUT, so a lost peer is an error and not a hang.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "rehearse.h"

typedef int HcclResult;
enum { HCCL_SUCCESS, HCCL_E_PARA, HCCL_E_NOT_SUPPORT = 5, HCCL_E_SYSCALL = 8, HCCL_E_TIMEOUT = 9 };
enum { INT8, INT16, INT32, FP16, FP32, INT64, UINT64, UINT8, UINT16, UINT32, FP64, BFP16 };
enum { SUM, PROD, MAX, MIN };
enum { SLOT = 4 << 20, MAIL = 1 << 18, ROOT_INFO_BYTES = 4108 };

typedef struct { _Atomic uint32_t arrived, generation, joined; } Header;
typedef struct { _Atomic uint32_t full; uint32_t bytes; char data[MAIL]; } Mail;
typedef struct { uint32_t ranks, rank; char name[128]; Header *header; char *slots; Mail *mail; size_t size; } Comm;

static size_t item_size(int type) { static const size_t s[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2}; return s[type]; }
static double seconds(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
#define WAIT_UNTIL(condition) do { double end_ = seconds() + rehearse_hccl_timeout(); \
    for (long spin_ = 0; !(condition); spin_++) { if (spin_ > 200) usleep(50); else sched_yield(); if (seconds() > end_) return HCCL_E_TIMEOUT; } } while (0)

static HcclResult barrier(Comm *c) {
    uint32_t generation = atomic_load(&c->header->generation);
    if (atomic_fetch_add(&c->header->arrived, 1) + 1 == c->ranks) {
        atomic_store(&c->header->arrived, 0);
        atomic_fetch_add(&c->header->generation, 1);
        return 0;
    }
    WAIT_UNTIL(atomic_load(&c->header->generation) != generation);
    return 0;
}
#define TRY(call) do { HcclResult r_ = (call); if (r_) return r_; } while (0)

/* ---- communicators ---- */
HcclResult HcclGetRootInfo(void *info) { CALL();
    static _Atomic int serial;
    memset(info, 0, ROOT_INFO_BYTES);
    snprintf(info, ROOT_INFO_BYTES, "/flagos_rehearse_%d_%d_%ld", getpid(), atomic_fetch_add(&serial, 1), (long)(seconds() * 1e6));
    return 0;
}
static HcclResult join(Comm *c) {
    atomic_fetch_add(&c->header->joined, 1);
    WAIT_UNTIL(atomic_load(&c->header->joined) >= c->ranks);
    return barrier(c);
}
HcclResult HcclCommInitRootInfo(uint32_t ranks, const void *info, uint32_t rank, void **out) { CALL();
    Comm *c = calloc(1, sizeof *c);
    c->ranks = ranks; c->rank = rank;
    snprintf(c->name, sizeof c->name, "%s", (const char *)info);
    c->size = 4096 + (size_t)ranks * SLOT + (size_t)ranks * ranks * sizeof(Mail);
    int fd = shm_open(c->name, O_CREAT | O_RDWR, 0600);
    if (fd < 0 || ftruncate(fd, c->size)) return HCCL_E_SYSCALL;
    char *base = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (base == MAP_FAILED) return HCCL_E_SYSCALL;
    c->header = (Header *)base; c->slots = base + 4096; c->mail = (Mail *)(c->slots + (size_t)ranks * SLOT);
    HcclResult code = join(c);
    if (rank == 0 || code) shm_unlink(c->name);
    if (code) {
        munmap(base, c->size);
        free(c);
        return code;
    }
    *out = c;
    return 0;
}
HcclResult HcclCommInitRootInfoConfig(uint32_t ranks, const void *info, uint32_t rank, const void *config, void **out) { (void)config; return HcclCommInitRootInfo(ranks, info, rank, out); }
uint32_t HcclGetCommConfigCapability(void) { return 0; }
HcclResult HcclCommDestroy(void *comm) { Comm *c = comm; munmap(c->header, c->size); free(c); return 0; }
HcclResult HcclGetCommName(void *comm, char *name) { snprintf(name, 128, "%s", ((Comm *)comm)->name); return 0; }
HcclResult HcclGetCommAsyncError(void *comm, HcclResult *error) { CALL(); (void)comm; *error = 0; return 0; }
HcclResult HcclSetConfig(int config, int64_t value) { (void)config; (void)value; return 0; }
HcclResult HcclGroupStart(void) { return 0; }
HcclResult HcclGroupEnd(void) { return 0; }
const char *HcclGetErrorString(HcclResult code) { return code == HCCL_E_TIMEOUT ? "HCCL timeout" : "HCCL error"; }

/* ---- reduction ---- */
static float half_to_float(uint16_t h) {
    uint32_t sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023, bits;
    if (exponent == 0) {
        float v = mantissa / 16777216.0f;
        return sign ? -v : v;
    }
    bits = exponent == 31 ? sign | 0x7f800000u | mantissa << 13 : sign | (exponent + 112) << 23 | mantissa << 13;
    float out; memcpy(&out, &bits, 4); return out;
}
static uint16_t float_to_half(float f) { _Float16 h = (_Float16)f; uint16_t out; memcpy(&out, &h, 2); return out; }
static float bf_to_float(uint16_t b) { uint32_t bits = (uint32_t)b << 16; float out; memcpy(&out, &bits, 4); return out; }
static uint16_t float_to_bf(float f) { uint32_t bits; memcpy(&bits, &f, 4); bits += 0x7fffu + ((bits >> 16) & 1); return bits >> 16; }

#define APPLY(a, b) (op == SUM ? (a) + (b) : op == PROD ? (a) * (b) : op == MAX ? ((a) > (b) ? (a) : (b)) : ((a) < (b) ? (a) : (b)))
#define LOOP(T) { T *x = into; const T *y = from; for (size_t i = 0; i < n; i++) x[i] = (T)APPLY(x[i], y[i]); break; }
#define LOOP_AS(UP, DOWN) { uint16_t *x = into; const uint16_t *y = from; for (size_t i = 0; i < n; i++) { float a = UP(x[i]), b = UP(y[i]); x[i] = DOWN(APPLY(a, b)); } break; }
static void reduce_into(void *into, const void *from, size_t n, int type, int op) {
    switch (type) {
        case INT8: LOOP(int8_t) case INT16: LOOP(int16_t) case INT32: LOOP(int32_t) case INT64: LOOP(int64_t)
        case UINT8: LOOP(uint8_t) case UINT16: LOOP(uint16_t) case UINT32: LOOP(uint32_t) case UINT64: LOOP(uint64_t)
        case FP32: LOOP(float) case FP64: LOOP(double)
        case FP16: LOOP_AS(half_to_float, float_to_half) case BFP16: LOOP_AS(bf_to_float, float_to_bf)
    }
}

/* ---- collectives, a slot-full at a time ---- */
#define SLOT_OF(r) (c->slots + (size_t)(r) * SLOT)
#define CHUNKS(total, unit) for (uint64_t at = 0, room = SLOT / (unit), now_ = 0; at < (total) && ((now_ = (total) - at < room ? (total) - at : room), 1); at += now_)

HcclResult HcclAllReduce(void *send, void *recv, uint64_t count, int type, int op, void *comm, void *stream) { CALL();
    Comm *c = comm; size_t w = item_size(type); (void)stream;
    CHUNKS(count, w) {
        memcpy(SLOT_OF(c->rank), (char *)send + at * w, now_ * w);
        TRY(barrier(c));
        char *out = (char *)recv + at * w;
        memcpy(out, SLOT_OF(0), now_ * w);
        for (uint32_t r = 1; r < c->ranks; r++) reduce_into(out, SLOT_OF(r), now_, type, op);
        TRY(barrier(c));
    }
    return 0;
}
HcclResult HcclReduce(void *send, void *recv, uint64_t count, int type, int op, uint32_t root, void *comm, void *stream) { CALL();
    Comm *c = comm;
    void *into = c->rank == root ? recv : malloc(count * item_size(type) + 1);
    HcclResult code = HcclAllReduce(send, into, count, type, op, comm, stream);
    if (into != recv) free(into);
    return code;
}
HcclResult HcclBroadcast(void *buffer, uint64_t count, int type, uint32_t root, void *comm, void *stream) { CALL();
    Comm *c = comm; size_t w = item_size(type); (void)stream;
    CHUNKS(count, w) {
        if (c->rank == root) memcpy(SLOT_OF(root), (char *)buffer + at * w, now_ * w);
        TRY(barrier(c));
        if (c->rank != root) memcpy((char *)buffer + at * w, SLOT_OF(root), now_ * w);
        TRY(barrier(c));
    }
    return 0;
}
HcclResult HcclAllGather(void *send, void *recv, uint64_t count, int type, void *comm, void *stream) { CALL();
    Comm *c = comm; size_t w = item_size(type); (void)stream;
    CHUNKS(count, w) {
        memcpy(SLOT_OF(c->rank), (char *)send + at * w, now_ * w);
        TRY(barrier(c));
        for (uint32_t r = 0; r < c->ranks; r++) memcpy((char *)recv + (r * count + at) * w, SLOT_OF(r), now_ * w);
        TRY(barrier(c));
    }
    return 0;
}
HcclResult HcclReduceScatter(void *send, void *recv, uint64_t count, int type, int op, void *comm, void *stream) { CALL();
    Comm *c = comm; size_t w = item_size(type);
    char *whole = malloc(count * c->ranks * w + 1);
    HcclResult code = HcclAllReduce(send, whole, count * c->ranks, type, op, comm, stream);
    if (!code) memcpy(recv, whole + c->rank * count * w, count * w);
    free(whole);
    return code;
}
HcclResult HcclScatter(void *send, void *recv, uint64_t count, int type, uint32_t root, void *comm, void *stream) { CALL();
    Comm *c = comm; size_t w = item_size(type);
    char *whole = malloc(count * c->ranks * w + 1);
    if (c->rank == root) memcpy(whole, send, count * c->ranks * w);
    HcclResult code = HcclBroadcast(whole, count * c->ranks, type, root, comm, stream);
    if (!code) memcpy(recv, whole + c->rank * count * w, count * w);
    free(whole);
    return code;
}

/* ---- point to point: one mailbox for each ordered pair of ranks ---- */
static Mail *mailbox(Comm *c, uint32_t from, uint32_t to) { return &c->mail[(size_t)from * c->ranks + to]; }
static HcclResult post(Comm *c, const char *data, uint64_t bytes, uint32_t to) {
    Mail *m = mailbox(c, c->rank, to);
    for (uint64_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < MAIL ? bytes - at : MAIL;
        WAIT_UNTIL(!atomic_load(&m->full));
        memcpy(m->data, data + at, n); m->bytes = n;
        atomic_store(&m->full, 1);
    }
    return 0;
}
static HcclResult collect(Comm *c, char *data, uint64_t bytes, uint32_t from) {
    Mail *m = mailbox(c, from, c->rank);
    for (uint64_t at = 0; at < bytes;) {
        WAIT_UNTIL(atomic_load(&m->full));
        memcpy(data + at, m->data, m->bytes); at += m->bytes;
        atomic_store(&m->full, 0);
    }
    return 0;
}
HcclResult HcclSend(void *buffer, uint64_t count, int type, uint32_t to, void *comm, void *stream) { CALL(); (void)stream; return post(comm, buffer, count * item_size(type), to); }
HcclResult HcclRecv(void *buffer, uint64_t count, int type, uint32_t from, void *comm, void *stream) { CALL(); (void)stream; return collect(comm, buffer, count * item_size(type), from); }

/* Sends and receives at once: whichever can go on does, so that no order in which two ranks list them makes them wait. */
typedef struct { int receives; char *data; uint64_t count; int type; uint32_t peer; } Transfer;  /* HcclSendRecvItem */
static uint64_t left(const Transfer *t, uint64_t done) { return t->count * item_size(t->type) - done; }
static int before(const Transfer *t, const uint64_t *done, uint32_t i) {  /* an earlier one between the same two ranks */
    for (uint32_t j = 0; j < i; j++)
        if (t[j].receives == t[i].receives && t[j].peer == t[i].peer && left(&t[j], done[j])) return 1;
    return 0;
}
static int advance(Comm *c, const Transfer *t, uint64_t *done, uint32_t count) {  /* 0: nothing moved, 1: some, 2: all done */
    int moved = 0, open = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = left(&t[i], done[i]);
        if (!bytes) continue;
        open = 1;
        Mail *m = t[i].receives ? mailbox(c, t[i].peer, c->rank) : mailbox(c, c->rank, t[i].peer);
        if ((int)atomic_load(&m->full) != t[i].receives || before(t, done, i)) continue;
        if (!t[i].receives) m->bytes = bytes < MAIL ? bytes : MAIL;
        char *here = t[i].data + done[i];
        memcpy(t[i].receives ? here : m->data, t[i].receives ? m->data : here, m->bytes);
        done[i] += m->bytes; moved = 1;
        atomic_store(&m->full, !t[i].receives);
    }
    return open ? moved : 2;
}
HcclResult HcclBatchSendRecv(const Transfer *items, uint32_t count, void *comm, void *stream) { CALL();
    uint64_t done[count + 1]; int state = 0; (void)stream;
    memset(done, 0, sizeof done);
    while (state != 2) WAIT_UNTIL((state = advance(comm, items, done, count)));
    return 0;
}

HcclResult HcclAlltoAllV(const void *send, const void *send_counts, const void *send_at, int send_type, const void *recv,
                         const void *recv_counts, const void *recv_at, int recv_type, void *comm, void *stream) { CALL();
    Comm *c = comm; size_t sw = item_size(send_type), rw = item_size(recv_type); (void)stream;
    const uint64_t *sn = send_counts, *sd = send_at, *rn = recv_counts, *rd = recv_at;
    for (uint32_t step = 0; step < c->ranks; step++) {  /* pairwise, the lower rank posts first */
        for (uint32_t peer = 0; peer < c->ranks; peer++) {
            if ((c->rank + peer) % c->ranks != step) continue;
            const char *out = (const char *)send + sd[peer] * sw; char *in = (char *)recv + rd[peer] * rw;
            if (peer == c->rank) { memcpy(in, out, sn[peer] * sw); continue; }
            if (c->rank < peer) { TRY(post(c, out, sn[peer] * sw, peer)); TRY(collect(c, in, rn[peer] * rw, peer)); }
            else { TRY(collect(c, in, rn[peer] * rw, peer)); TRY(post(c, out, sn[peer] * sw, peer)); }
        }
    }
    return 0;
}
HcclResult HcclAlltoAll(const void *send, uint64_t count, int type, const void *recv, uint64_t recv_count, int recv_type, void *comm, void *stream) { CALL();
    Comm *c = comm; uint64_t n[c->ranks], m[c->ranks], at[c->ranks], rat[c->ranks];
    for (uint32_t r = 0; r < c->ranks; r++) { n[r] = count; m[r] = recv_count; at[r] = r * count; rat[r] = r * recv_count; }
    return HcclAlltoAllV(send, n, at, type, recv, m, rat, recv_type, comm, stream);
}
