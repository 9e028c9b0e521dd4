package reconnect

import (
	"regexp"
	"sync"
	"time"
)

// repeats counts equal events, so that a log can leave most of them out. The zero value is ready to
// use. It is safe for concurrent use.
type repeats struct {
	mu   sync.Mutex
	seen map[string]repeat // guarded by mu
}

type repeat struct {
	n    int
	last time.Time
}

const (
	repeatsQuiet = 10 * time.Minute // an event counts as new after this time without it
	repeatsKinds = 256              // limit on seen, because the text of an error may differ each time
)

// add counts an event, and returns how often it has come. A new event for which there is no room is
// not counted, and add returns 1.
func (r *repeats) add(event string, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.seen[event]
	if now.Sub(e.last) >= repeatsQuiet {
		e.n = 0
	}
	if e.n == 0 && !r.room(now) {
		return 1
	}
	e.n++
	e.last = now
	r.seen[event] = e
	return e.n
}

// room reports whether there is room for another event. If not, it first removes those that count
// as new. The caller must hold mu.
func (r *repeats) room(now time.Time) bool {
	if r.seen == nil {
		r.seen = make(map[string]repeat)
	}
	if len(r.seen) < repeatsKinds {
		return true
	}
	for event, e := range r.seen {
		if now.Sub(e.last) >= repeatsQuiet {
			delete(r.seen, event)
		}
	}
	return len(r.seen) < repeatsKinds
}

// portDigits matches a port, which differs for each connection.
var portDigits = regexp.MustCompile(`:\d+`)

// withoutPorts returns text without the digits of its ports.
func withoutPorts(text string) string { return portDigits.ReplaceAllString(text, ":") }
