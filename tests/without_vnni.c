/* A processor without AVX-512, VNNI, AMX and bf16, for one process and its children: LD_PRELOAD this.
 *
 * Linux lets a process ask for a fault at CPUID (arch_prctl(2), ARCH_SET_CPUID); the handler answers with those bits
 * cleared, so that libraries choose kernels as they do on such a processor. /proc/cpuinfo is answered likewise.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static struct sigaction theirs;

static void limited(unsigned leaf, unsigned sub, unsigned *a, unsigned *b, unsigned *c, unsigned *d) {
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
    __cpuid_count(leaf, sub, *a, *b, *c, *d);
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    if (leaf == 7 && sub == 0) {
        *b &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
        *c &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
        *d &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25);
    } else if (leaf == 7 && sub == 1) {
        *a &= ~(1u << 4 | 1u << 5 | 1u << 21 | 1u << 23);
        *d &= ~(1u << 4 | 1u << 5 | 1u << 10 | 1u << 19);
    } else if (leaf == 0x1d || leaf == 0x1e || leaf == 0x24) {
        *a = *b = *c = *d = 0;
    }
}

static void faulted(int number, siginfo_t *info, void *context) {
    greg_t *at = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)at[REG_RIP];
    if (info->si_code == SI_KERNEL && code[0] == 0x0f && code[1] == 0xa2) {
        unsigned a, b, c, d;
        limited(at[REG_RAX], at[REG_RCX], &a, &b, &c, &d);
        at[REG_RAX] = a, at[REG_RBX] = b, at[REG_RCX] = c, at[REG_RDX] = d;
        at[REG_RIP] += 2;
    } else if (theirs.sa_flags & SA_SIGINFO && theirs.sa_sigaction) {
        theirs.sa_sigaction(number, info, context);
    } else if (theirs.sa_handler != SIG_DFL && theirs.sa_handler != SIG_IGN) {
        theirs.sa_handler(number);
    } else {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
}

/* Handlers that others install for SIGSEGV come second. */
int sigaction(int number, const struct sigaction *wanted, struct sigaction *before) {
    static int (*real)(int, const struct sigaction *, struct sigaction *);
    if (!real) real = dlsym(RTLD_NEXT, "sigaction");
    if (number != SIGSEGV) return real(number, wanted, before);
    if (before) *before = theirs;
    if (wanted) theirs = *wanted;
    return 0;
}

static const char *GONE[] = {"avx512", "vnni", "amx", "bf16", "avx_ifma", "avx_ne"};

static int cpuinfo(void) {
    FILE *in = fopen("/proc/self/../cpuinfo", "r");
    int out = memfd_create("cpuinfo", 0);
    static char line[1 << 16];
    while (in && fgets(line, sizeof line, in)) {
        int flags = !strncmp(line, "flags", 5);
        for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
            int gone = 0;
            for (unsigned each = 0; flags && each < sizeof GONE / sizeof *GONE; each++) gone |= strstr(word, GONE[each]) != NULL;
            if (!gone || strchr(word, '\n')) dprintf(out, "%s%s", gone ? "\n" : word, gone || strchr(word, '\n') ? "" : " ");
        }
    }
    if (in) fclose(in);
    lseek(out, 0, SEEK_SET);
    return out;
}

#define OPEN(name)                                                                                       \
    int name(const char *path, int flags, ...) {                                                         \
        va_list more;                                                                                    \
        va_start(more, flags);                                                                           \
        int mode = va_arg(more, int);                                                                    \
        va_end(more);                                                                                    \
        return strcmp(path, "/proc/cpuinfo") ? (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode) : cpuinfo(); \
    }
OPEN(open)
OPEN(open64)

__attribute__((constructor)) static void start(void) {
    struct sigaction ours = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    int (*real)(int, const struct sigaction *, struct sigaction *) = dlsym(RTLD_NEXT, "sigaction");
    real(SIGSEGV, &ours, &theirs);
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0)) fprintf(stderr, "this processor cannot be limited\n"), exit(77);
}
