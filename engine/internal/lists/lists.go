// Package lists has functions for queues that must free the memory of a burst.
package lists

// smallList is the capacity that a list may always keep.
const smallList = 1024

// Roomy reports whether a list with the given number of items has a much larger capacity,
// left from a burst that is over.
func Roomy(room, items int) bool { return room > smallList && items < room/4 }

// Blank empties a used list so that it can be filled again. It frees the memory of a burst.
func Blank[T any](list []T) []T {
	if Roomy(cap(list), len(list)) {
		return nil
	}
	clear(list)
	return list[:0]
}

// DropFirst returns a list without its first n items. It keeps no reference to them, and
// frees the memory of a burst.
func DropFirst[T any](list []T, n int) []T {
	rest := list[n:]
	if len(rest) == 0 && cap(list) > smallList {
		return nil
	}
	if Roomy(cap(list), len(rest)) {
		return append([]T(nil), rest...)
	}
	kept := copy(list, rest)
	clear(list[kept:])
	return list[:kept]
}
