package sqlite

import "io/fs"

// careful has no meaning here: names of pipes are not names of files.
const careful = 0

// othersWrite knows nothing: access lists say who may write, not modes. A
// directory below the user's profile is the user's own.
func othersWrite(fs.FileInfo) string { return "" }

// foreign knows nothing, as othersWrite.
func foreign(fs.FileInfo) (uid int, other bool) { return 0, false }
