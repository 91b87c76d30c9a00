package render

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/story"
)

// A step that failed says why its call was not repeated, if there is a reason
// other than that attempts and time were used up.
func TestSentenceNotRepeated(t *testing.T) {
	for why, want := range map[story.NotRepeated]string{
		"":                  "s: failed: timeout",
		story.NotIdempotent: "s: failed: timeout; not repeated, because http.post is not idempotent and may have done its work",
		story.NotPermanent:  "not repeated, because it would fail in the same way again",
		story.NotOn:         "not repeated, because not_on names its code",
		story.NotTransient:  "not repeated, because its code is not transient and on does not name it",
	} {
		f := story.Fact{Kind: story.FactStepFinished, Step: "s", Action: "http.post", Status: "failed", Code: "timeout", NotRepeated: why}
		if got := Sentence(f, -1); !strings.HasSuffix(got, want) {
			t.Errorf("%q says %q, want %q", why, got, want)
		}
	}
}
