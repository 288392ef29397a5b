/* Device memory.  All of it lies in one range of addresses, reserved once and without backing: a device tensor's
 * address less rehearse_arena() is its place in one flat array, which makes a host view of it cheap (host_memory.py).
 * A block gets pages when it is allocated and loses them when it is freed.  Each chip has a budget; the reserved
 * range is many times larger, so that fragments and the allocator's expandable segments find room.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "rehearse.h"

enum { PAGE = 4096, RESERVE_FACTOR = 16 };
typedef struct Block { char *address; size_t bytes, charged; int chip; struct Block *next; } Block;  /* sorted by address */
typedef struct { size_t bytes; int chip; } Physical;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block *blocks;
static size_t used[MAX_DEVICES], span;
static char *arena;

static size_t pages(size_t bytes) { return bytes ? (bytes + PAGE - 1) / PAGE * PAGE : PAGE; }

static int reserve(void) {  /* with the lock held */
    if (arena) return 0;
    span = pages(rehearse_chip_memory()) * RESERVE_FACTOR * (size_t)(rehearse_chip_count() ? rehearse_chip_count() : 1);
    void *got = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return ACL_OUT_OF_MEMORY;
    arena = got;
    return 0;
}
void *rehearse_arena(void) { pthread_mutex_lock(&lock); reserve(); pthread_mutex_unlock(&lock); return arena; }
size_t rehearse_arena_bytes(void) { return span; }

static int back(void *address, size_t bytes) {
    return mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED;
}
static void strip(void *address, size_t bytes) {
    mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
static aclError no_memory(void) {
    rehearse_message("EL0004: Failed to allocate memory. Possible Cause: Available memory is insufficient.");
    return ACL_OUT_OF_MEMORY;
}
/* A free range of the arena, first fit; NULL where there is none.  With the lock held. */
static Block *take(size_t bytes, size_t charged, int chip) {
    if (reserve()) return NULL;
    char *at = arena;
    Block **link = &blocks;
    while (*link && (size_t)((*link)->address - at) < bytes) {
        at = (*link)->address + (*link)->bytes;
        link = &(*link)->next;
    }
    if (at + bytes > arena + span) return NULL;
    Block *block = malloc(sizeof *block);
    if (!block) return NULL;
    *block = (Block){at, bytes, charged, chip, *link};
    *link = block;
    return block;
}
static void release(void *address) {
    pthread_mutex_lock(&lock);
    for (Block **link = &blocks; *link; link = &(*link)->next) {
        Block *block = *link;
        if (block->address != address) continue;
        *link = block->next;
        used[block->chip] -= block->charged;
        strip(block->address, block->bytes);
        free(block);
        break;
    }
    pthread_mutex_unlock(&lock);
}

aclError aclrtMalloc(void **address, size_t bytes, int policy) {
    CALL(); (void)policy;
    int chip = rehearse_physical(rehearse_current());
    size_t room = pages(bytes);
    Block *block = NULL;
    *address = NULL;
    if (chip < 0) return ACL_CONTEXT_NULL;
    pthread_mutex_lock(&lock);
    if (used[chip] + bytes <= rehearse_chip_memory()) block = take(room, bytes, chip);
    if (block) used[chip] += bytes;
    pthread_mutex_unlock(&lock);
    if (!block) return no_memory();
    if (back(block->address, room)) { release(block->address); return no_memory(); }
    *address = block->address;
    return 0;
}
aclError aclrtMallocAlign32(void **address, size_t bytes, int policy) { CALL(); return aclrtMalloc(address, bytes, policy); }
aclError aclrtFree(void *address) { CALL(); release(address); return 0; }
aclError aclrtGetMemInfo(int attribute, size_t *available, size_t *total) {
    CALL(); (void)attribute;
    int chip = rehearse_physical(rehearse_current());
    *total = rehearse_chip_memory();
    *available = chip < 0 ? 0 : *total - used[chip];
    return 0;
}

/* ---- expandable segments: addresses and memory are had apart and joined by a map ---- */
aclError aclrtReserveMemAddress(void **address, size_t bytes, size_t alignment, void *wanted, uint64_t flags) {
    CALL(); (void)alignment; (void)wanted; (void)flags;
    int chip = rehearse_physical(rehearse_current());
    pthread_mutex_lock(&lock);
    Block *block = chip < 0 ? NULL : take(pages(bytes), 0, chip);
    pthread_mutex_unlock(&lock);
    *address = block ? block->address : NULL;
    return block ? 0 : no_memory();
}
aclError aclrtReleaseMemAddress(void *address) { CALL(); release(address); return 0; }
aclError aclrtMallocPhysical(void **handle, size_t bytes, const void *properties, uint64_t flags) {
    CALL(); (void)properties; (void)flags;
    int chip = rehearse_physical(rehearse_current());
    Physical *physical = chip < 0 ? NULL : malloc(sizeof *physical);
    if (!physical) return no_memory();
    pthread_mutex_lock(&lock);
    int fits = used[chip] + bytes <= rehearse_chip_memory();
    if (fits) used[chip] += bytes;
    pthread_mutex_unlock(&lock);
    if (!fits) { free(physical); return no_memory(); }
    *physical = (Physical){bytes, chip};
    *handle = physical;
    return 0;
}
aclError aclrtFreePhysical(void *handle) {
    CALL();
    Physical *physical = handle;
    pthread_mutex_lock(&lock);
    used[physical->chip] -= physical->bytes;
    pthread_mutex_unlock(&lock);
    free(physical);
    return 0;
}
typedef struct Mapped { void *address; size_t bytes; struct Mapped *next; } Mapped;
static Mapped *mapped;
aclError aclrtMapMem(void *address, size_t bytes, size_t offset, void *handle, uint64_t flags) {
    CALL(); (void)offset; (void)handle; (void)flags;
    Mapped *map = malloc(sizeof *map);
    if (!map || back(address, bytes)) { free(map); return no_memory(); }
    pthread_mutex_lock(&lock);
    *map = (Mapped){address, bytes, mapped};
    mapped = map;
    pthread_mutex_unlock(&lock);
    return 0;
}
aclError aclrtUnmapMem(void *address) {
    CALL();
    pthread_mutex_lock(&lock);
    for (Mapped **link = &mapped; *link; link = &(*link)->next) {
        Mapped *map = *link;
        if (map->address != address) continue;
        *link = map->next;
        strip(map->address, map->bytes);
        free(map);
        break;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

/* ---- host memory and copies ---- */
aclError aclrtMallocHost(void **address, size_t bytes) { CALL(); *address = NULL; return posix_memalign(address, 64, bytes ? bytes : 64) ? ACL_OUT_OF_MEMORY : 0; }
aclError aclrtMallocHostWithCfg(void **address, uint64_t bytes, void *config) { CALL(); (void)config; return aclrtMallocHost(address, bytes); }
aclError aclrtFreeHost(void *address) { free(address); return 0; }
aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t bytes, int kind) {
    CALL(); (void)kind;
    if (bytes > room) return ACL_INVALID_PARAM;
    memmove(to, from, bytes);
    return 0;
}
aclError aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t bytes, int kind, void *stream) {
    CALL(); (void)stream; (void)kind;
    if (bytes > room) return ACL_INVALID_PARAM;
    memmove(to, from, bytes);
    return 0;
}
aclError aclrtMemset(void *to, size_t room, int32_t value, size_t bytes) { CALL(); (void)room; memset(to, value, bytes); return 0; }
aclError aclrtMemsetAsync(void *to, size_t room, int32_t value, size_t bytes, void *stream) { CALL(); (void)room; (void)stream; memset(to, value, bytes); return 0; }
