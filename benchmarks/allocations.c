// benchmarks/allocations.c -- malloc and its kin, counted.
//
// Linked into dibs-bench it counts what libdibs takes; preloaded into dibsd it counts what the
// broker takes. There the count lies in the file that $DIBS_ALLOCATIONS names, so that another
// process can read it while the broker runs. The memory itself comes from the C library.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/allocations.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static _Atomic uint64_t own_count;
static _Atomic uint64_t* count = &own_count;

__attribute__((constructor)) static void share_count(void) {
    const char* path = getenv("DIBS_ALLOCATIONS");
    if (path == NULL) return;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void* page = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED) count = page;
}

static void taken(void) {
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

uint64_t dibs_allocations(void) {
    return atomic_load_explicit(count, memory_order_relaxed);
}

void* malloc(size_t size) {
    taken();
    return __libc_malloc(size);
}

void* calloc(size_t items, size_t size) {
    taken();
    return __libc_calloc(items, size);
}

void* realloc(void* memory, size_t size) {
    taken();
    return __libc_realloc(memory, size);
}

void* memalign(size_t alignment, size_t size) {
    taken();
    return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
    taken();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
    taken();
    *memory = __libc_memalign(alignment, size);
    return *memory == NULL ? ENOMEM : 0;
}
