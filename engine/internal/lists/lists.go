// Package lists has functions for slices that are used as queues. They free memory that a
// queue needed only because it was long for a short time.
package lists

// smallList is the capacity, in items, that a list may always keep.
const smallList = 1024

// Oversized reports whether a list has a much larger capacity than it needs. The parameter
// `capacity` is the capacity of the list, and the parameter `items` is the number of its items. For
// small lists the result is false.
func Oversized(capacity, items int) bool { return capacity > smallList && items < capacity/4 }

// Blank empties a list and returns it, so that its memory can be reused. If the list has much
// more memory than its items need, Blank returns nil instead, so that the memory becomes free.
func Blank[T any](list []T) []T {
	if Oversized(cap(list), len(list)) {
		return nil
	}
	clear(list)
	return list[:0]
}

// DropFirst removes the first n items of a list and returns the remaining list. It changes
// the given list. It removes references to old items, and frees memory that the list does
// not need any more.
func DropFirst[T any](list []T, n int) []T {
	rest := list[n:]
	if len(rest) == 0 && cap(list) > smallList {
		return nil
	}
	if Oversized(cap(list), len(rest)) {
		return append([]T(nil), rest...)
	}
	kept := copy(list, rest)
	clear(list[kept:])
	return list[:kept]
}
