package replies

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/saga-engine/engine/engine/store/naming"
)

// The kinds of sinks. A sink is written as KIND:NAME.
const (
	Table   = "table:"   // a queue of the store
	Webhook = "webhook:" // a sink that the operator has configured, or an https or http URL
	Agent   = "agent:"   // agent:NAME.ACTION: an action of an agent in the run's definition
)

// The largest sizes of the texts that a submitter gives.
const (
	MaxSink        = 500 // of a sink, in bytes
	MaxCorrelation = 200 // of a correlation id, in bytes
)

// Check returns an error if the sink or the correlation id of a run's replies is not valid. It does
// not know which webhooks engines accept.
func Check(sink, correlation string) error {
	switch {
	case len(correlation) > MaxCorrelation:
		return fmt.Errorf("the correlation id has %d bytes, more than the %d allowed", len(correlation), MaxCorrelation)
	case correlation != naming.CleanText(correlation):
		return errors.New("the correlation id holds bytes that are not text")
	case sink == "" && correlation != "":
		return errors.New("a correlation id needs a reply sink: name one, such as table:orders")
	case sink == "":
		return nil
	case len(sink) > MaxSink:
		return fmt.Errorf("the reply sink has %d bytes, more than the %d allowed", len(sink), MaxSink)
	}
	if queue, table := strings.CutPrefix(sink, Table); table {
		return checkName(queue, sink)
	}
	if action, agent := strings.CutPrefix(sink, Agent); agent {
		if dot := strings.LastIndexByte(action, '.'); dot <= 0 || dot == len(action)-1 || action != naming.CleanText(action) {
			return fmt.Errorf("%q is no reply sink: write agent:NAME.ACTION, such as agent:shop.told", sink)
		}
		return nil
	}
	hook, is := strings.CutPrefix(sink, Webhook)
	switch {
	case !is:
		return fmt.Errorf("%q is no reply sink: write table:QUEUE, webhook:NAME, webhook:https://HOST/PATH or agent:NAME.ACTION", sink)
	case !strings.Contains(hook, "/"):
		return checkName(hook, sink)
	}
	u, err := url.Parse(hook)
	switch {
	case err != nil || !utf8.ValidString(hook):
		return fmt.Errorf("%q is no reply sink: its URL cannot be read", sink)
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Fragment != "":
		return fmt.Errorf("%q is no reply sink: write webhook:https://HOST/PATH", sink)
	case u.User != nil:
		return errors.New("the URL of a reply sink must not have a user or a password, because everybody who can read the run can read it")
	}
	return nil
}

// checkName returns an error if the name of a sink is not valid.
func checkName(name, sink string) error {
	ok := name != "" && len(name) <= 100
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0)
	}
	if !ok {
		return fmt.Errorf("%q is no reply sink: its name must have 1 to 100 ASCII letters, digits and . _ -", sink)
	}
	return nil
}
