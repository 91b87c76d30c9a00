package sqlite

import "io/fs"

// careful has no flags: on Windows, opening a file cannot wait for the other end of a pipe.
const careful = 0

// othersWrite always returns "": on Windows access lists, not modes, say who may write. A
// directory below the user's profile belongs to the user alone.
func othersWrite(fs.FileInfo) string { return "" }

// foreign always returns 0 and false, because on Windows access lists say who may write.
func foreign(fs.FileInfo) (uid int, other bool) { return 0, false }
