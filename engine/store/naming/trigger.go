package naming

// A Trigger says what has started a run. A store keeps the number.
type Trigger uint8

// The triggers. New constants get new numbers.
const (
	ByHand         Trigger = iota // a person or a program, through the command line or the API
	ByEvent                       // a sent event, also if it starts one run for each of its keys
	BySchedule                    // a tick of a schedule
	BySelection                   // a row of a selection, also if an event or a person opened the firing
	BySubmission                  // another program, with SQL
	ByParent                      // a step of another run
	ByNotification                // a state of another run that has to be announced
)

// triggerNames has the word for each Trigger.
var triggerNames = []string{"manual", "event", "schedule", "selection", "submitted", "parent", "notify"}

// String returns the word for t, such as manual.
func (t Trigger) String() string {
	if int(t) < len(triggerNames) {
		return triggerNames[t]
	}
	return "unknown"
}

// TriggerNames returns the words that ParseTrigger accepts.
func TriggerNames() []string { return append([]string(nil), triggerNames...) }

// ParseTrigger returns the Trigger that a word means.
func ParseTrigger(word string) (t Trigger, ok bool) {
	for i, name := range triggerNames {
		if name == word {
			return Trigger(i), true
		}
	}
	return 0, false
}
