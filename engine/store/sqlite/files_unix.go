//go:build unix

package sqlite

import (
	"io/fs"
	"os"
	"syscall"
)

// safeOpenFlags holds flags for opening a file. With these flags, a symbolic link is an error, and
// opening a named pipe does not wait for the other end of the pipe.
const safeOpenFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// othersWrite returns who else can write to a directory; "" = only its owner. On many
// systems each user has a group of the same name. That group has no other members, so it
// does not count.
func othersWrite(info fs.FileInfo) string {
	mode := info.Mode().Perm()
	stat, ok := info.Sys().(*syscall.Stat_t)
	own := ok && int(stat.Gid) == os.Getegid() && os.Getegid() == os.Geteuid()
	switch {
	case mode&0o002 != 0:
		return "every user"
	case mode&0o020 != 0 && !own:
		return "a group"
	}
	return ""
}

// foreign returns the owner of a file, and whether the owner is neither this user nor root.
func foreign(info fs.FileInfo) (uid int, other bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	uid = int(stat.Uid)
	return uid, uid != 0 && uid != os.Geteuid()
}
