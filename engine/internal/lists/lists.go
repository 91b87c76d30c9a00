// Package lists has what queues share that must not keep the room of a burst.
package lists

// smallList is how many items a list may have room for, whether it needs them or
// not.
const smallList = 1024

// Roomy reports whether a list that now holds so many items keeps much more room
// than that, from a burst that is over.
func Roomy(room, items int) bool { return room > smallList && items < room/4 }

// Blank returns a list that was used, empty and to be filled again. The room of a
// burst is given back.
func Blank[T any](list []T) []T {
	if Roomy(cap(list), len(list)) {
		return nil
	}
	clear(list)
	return list[:0]
}

// DropFirst returns a list without its first n items. It keeps nothing of them,
// and the room of a burst is given back.
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
