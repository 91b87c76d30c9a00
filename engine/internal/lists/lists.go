// Package lists has functions for queues. A queue that was long for a short time must free
// the extra memory afterwards.
package lists

// smallList is the capacity, in items, that a list may always keep.
const smallList = 1024

// Roomy reports whether a list has a much larger capacity than its items need, because the
// list was longer before.
func Roomy(room, items int) bool { return room > smallList && items < room/4 }

// Blank empties a list so that its memory can be reused. It returns nil if the list has
// much more memory than its items needed.
func Blank[T any](list []T) []T {
	if Roomy(cap(list), len(list)) {
		return nil
	}
	clear(list)
	return list[:0]
}

// DropFirst returns a list without its first n items. It clears the references to them, and
// drops memory that the list does not need any more.
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
