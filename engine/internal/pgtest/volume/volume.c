/*
 * Makes the volume under a process full while the file that PGTEST_FULL names
 * exists: whatever would make a regular file longer fails with ENOSPC, as on a
 * disk without a free block; what is there already can be overwritten.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int full(int fd, off_t end) {
	const char *flag = getenv("PGTEST_FULL");
	struct stat st;
	int saved = errno, yes;
	yes = flag != NULL && access(flag, F_OK) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && end > st.st_size;
	errno = yes ? ENOSPC : saved;
	return yes;
}

/* here returns where the next write without a position ends. */
static off_t here(int fd, size_t n) {
	struct stat st;
	int saved = errno, flags = fcntl(fd, F_GETFL);
	off_t at = lseek(fd, 0, SEEK_CUR);
	if (flags >= 0 && (flags & O_APPEND) && fstat(fd, &st) == 0)
		at = st.st_size;
	errno = saved;
	return at < 0 ? 0 : at + (off_t)n;
}

static size_t total(const struct iovec *v, int n) {
	size_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += v[i].iov_len;
	return sum;
}

#define NEXT(type, name) \
	static type next; \
	if (next == NULL) \
		next = (type)dlsym(RTLD_NEXT, name)

typedef ssize_t (*write_fn)(int, const void *, size_t);
typedef ssize_t (*pwrite_fn)(int, const void *, size_t, off_t);
typedef ssize_t (*writev_fn)(int, const struct iovec *, int);
typedef ssize_t (*pwritev_fn)(int, const struct iovec *, int, off_t);
typedef int (*posix_fallocate_fn)(int, off_t, off_t);
typedef int (*fallocate_fn)(int, int, off_t, off_t);

ssize_t write(int fd, const void *b, size_t n) {
	NEXT(write_fn, "write");
	return full(fd, here(fd, n)) ? -1 : next(fd, b, n);
}

ssize_t writev(int fd, const struct iovec *v, int n) {
	NEXT(writev_fn, "writev");
	return full(fd, here(fd, total(v, n))) ? -1 : next(fd, v, n);
}

#define PWRITE(name) \
	ssize_t name(int fd, const void *b, size_t n, off_t at) { \
		NEXT(pwrite_fn, #name); \
		return full(fd, at + (off_t)n) ? -1 : next(fd, b, n, at); \
	}
PWRITE(pwrite)
PWRITE(pwrite64)

#define PWRITEV(name) \
	ssize_t name(int fd, const struct iovec *v, int n, off_t at) { \
		NEXT(pwritev_fn, #name); \
		return full(fd, at + (off_t)total(v, n)) ? -1 : next(fd, v, n, at); \
	}
PWRITEV(pwritev)
PWRITEV(pwritev64)

#define POSIX_FALLOCATE(name) \
	int name(int fd, off_t at, off_t n) { \
		NEXT(posix_fallocate_fn, #name); \
		return full(fd, at + n) ? ENOSPC : next(fd, at, n); \
	}
POSIX_FALLOCATE(posix_fallocate)
POSIX_FALLOCATE(posix_fallocate64)

#define FALLOCATE(name) \
	int name(int fd, int mode, off_t at, off_t n) { \
		NEXT(fallocate_fn, #name); \
		return full(fd, at + n) ? -1 : next(fd, mode, at, n); \
	}
FALLOCATE(fallocate)
FALLOCATE(fallocate64)
