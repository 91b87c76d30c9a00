//go:build unix

package sqlite

import (
	"io/fs"
	"os"
	"syscall"
)

// careful keeps an open from following a link and from waiting for the other end
// of a pipe.
const careful = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// othersWrite says who else can write a directory; "" = only its owner. The
// group of the user's own name, which many systems give each user, has no other
// members.
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

// foreign returns the owner, and whether it is neither this user nor root.
func foreign(info fs.FileInfo) (uid int, other bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	uid = int(stat.Uid)
	return uid, uid != 0 && uid != os.Geteuid()
}
