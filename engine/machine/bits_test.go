package machine

import "testing"

// Journals hold the bits of fields: the place of a field in its table is its bit.
func TestFieldsStandInTheOrderOfTheirBits(t *testing.T) {
	checkBits(t, "run", runFields)
	checkBits(t, "node", nodeFields)
	checkBits(t, "attempt", attemptFields)
}

func checkBits[T any](t *testing.T, of string, fields []field[T]) {
	t.Helper()
	for i := range fields {
		if fields[i].bit != 1<<i {
			t.Errorf("field %d of a %s has the bit %b, want bit %d", i, of, fields[i].bit, i)
		}
	}
}
