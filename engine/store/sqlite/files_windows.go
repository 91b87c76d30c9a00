package sqlite

import "io/fs"

// safeOpenFlags has no flags, because on Windows a named pipe is not a file in a directory.
const safeOpenFlags = 0

// othersWrite always returns "". On Windows, access lists say who may write; the mode of a file
// does not say it. Only the user can write to a directory below the user's profile.
func othersWrite(fs.FileInfo) string { return "" }

// foreign always returns 0 and false. On Windows, the owner of a file does not decide who may
// write it: the access list decides.
func foreign(fs.FileInfo) (uid int, other bool) { return 0, false }
