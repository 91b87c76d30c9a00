package submit

import (
	"errors"
	"fmt"
	"testing"

	"github.com/saga-engine/engine/engine/store/admission"
)

// S92: a refusal is about the submission, so an engine that accepts submissions of other programs
// refuses it. A check that could not run now is tried again.
func TestBusyCheckIsTriedAgain(t *testing.T) {
	for code, want := range map[admission.Code]bool{
		admission.Refused: true, admission.NoRow: true, admission.Writes: true, admission.Unsupported: true, admission.Busy: false,
	} {
		err := fmt.Errorf("submit: %w", &admission.Error{Name: "order", Code: code, Err: errors.New("cause")})
		if got := Refused(t.Context(), err); got != want {
			t.Errorf("%s: refused = %t, want %t", code, got, want)
		}
	}
}
