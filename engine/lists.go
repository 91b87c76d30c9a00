package engine

// smallList is how many items a list may have room for, whether it needs them or
// not.
const smallList = 1024

// roomy reports whether a list that now holds so many items keeps much more room
// than that, from a burst that is over.
func roomy(room, items int) bool { return room > smallList && items < room/4 }

// blank returns a list that was used, empty and to be filled again. The room of a
// burst is given back.
func blank[T any](list []T) []T {
	if roomy(cap(list), len(list)) {
		return nil
	}
	clear(list)
	return list[:0]
}

// dropFirst returns a list without its first n items. It keeps nothing of them,
// and the room of a burst is given back.
func dropFirst[T any](list []T, n int) []T {
	rest := list[n:]
	if len(rest) == 0 && cap(list) > smallList {
		return nil
	}
	if roomy(cap(list), len(rest)) {
		return append([]T(nil), rest...)
	}
	kept := copy(list, rest)
	clear(list[kept:])
	return list[:kept]
}
