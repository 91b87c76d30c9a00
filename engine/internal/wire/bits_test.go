package wire

import (
	"testing"

	"github.com/saga-engine/engine/engine/internal/model"
)

// Journals hold the bits of fields: the place of a field in its tables is its bit.
func TestFieldsStandInTheOrderOfTheirBits(t *testing.T) {
	checkBits(t, "run", model.RunFields, runCodec)
	checkBits(t, "node", model.NodeFields, nodeCodec)
	checkBits(t, "attempt", model.AttemptFields, attemptCodec)
}

func checkBits[T any](t *testing.T, of string, fields []model.Field[T], codecs []codec[T]) {
	t.Helper()
	if len(fields) != len(codecs) {
		t.Errorf("a %s has %d fields and %d codecs", of, len(fields), len(codecs))
	}
	for i := range fields {
		if fields[i].Bit != 1<<i || codecs[i].bit != 1<<i {
			t.Errorf("field %d of a %s has the bits %b and %b, want bit %d", i, of, fields[i].Bit, codecs[i].bit, i)
		}
	}
}
