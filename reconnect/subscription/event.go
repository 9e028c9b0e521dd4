package subscription

import (
	"slices"
	"time"
)

// Event is a change of keys in a session: see Options.Events.
type Event[K comparable] struct {
	Kind     Kind
	Session  uint64
	Keys     []K           // belongs to the receiver; nil for EventBehind
	Op       Op            // of EventRejected: the request
	Err      error         // of EventRejected: the reason
	Decision Decision      // of EventRejected
	Wait     time.Duration // of EventRejected: how long until the key is asked for again
	Missing  int           // of EventBehind: how many keys
}

// Kind is the kind of an [Event].
type Kind uint8

// The kinds.
const (
	// EventHeld says that the session holds the keys: the venue has agreed, or the keys were in the
	// URL of the dial.
	EventHeld Kind = 1 + iota

	// EventReleased says that the session holds the keys no more: they were removed, or given up
	// without an answer.
	EventReleased

	// EventRejected says that the venue has refused a key, has not answered twice, or has ended the
	// subscription without a request.
	EventRejected

	// EventBehind says that a session which replaces another was ready before it held all keys,
	// because the time was short: see Sessions in the documentation of the package. The missing
	// keys follow.
	EventBehind
)

func (k Kind) String() string {
	switch k {
	case EventHeld:
		return "held"
	case EventReleased:
		return "released"
	case EventRejected:
		return "rejected"
	case EventBehind:
		return "behind"
	}
	return "unknown"
}

// note keeps an event for Events, and starts the goroutine that calls it. The caller holds mu.
func (s *Set[K]) note(e Event[K], list []*entry[K]) {
	if s.o.Events == nil || s.over || len(list) == 0 && e.Kind != EventBehind {
		return
	}
	if len(list) > 0 {
		e.Keys = make([]K, len(list))
		for i, x := range list {
			e.Keys[i] = x.key
		}
	}
	if s.events = append(s.events, e); !s.reporting {
		s.reporting = true
		s.workers.Add(1)
		go s.report() // end waits for it
	}
}

// report calls Events until there is no event. It runs in a separate goroutine, so that no session
// waits for Events, which may wait for a session.
func (s *Set[K]) report() {
	defer s.workers.Done()
	var e Event[K]
	returned := true
	defer func() {
		if !returned { // Events has ended this goroutine
			s.conn.Redial(e.Session, errNotReturned)
			s.workers.Add(1)
			go s.report() // end waits for it
		}
	}()
	for s.nextEvent(&e) {
		returned = false
		s.o.Events(e)
		returned = true
	}
}

// nextEvent takes the oldest event, and reports false if there is none. Then the workers go on.
func (s *Set[K]) nextEvent(e *Event[K]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) == 0 {
		s.events, s.reporting = nil, false
		s.kick()
		return false
	}
	*e = s.events[0]
	s.events[0] = Event[K]{}
	s.events = s.events[1:]
	return true
}

// lapse drops the events of a session that has ended. Of the rejections of all sessions it keeps the
// last for each key and operation, so that a slow Events takes no more memory with each session. The
// caller holds mu.
func (s *Set[K]) lapse(session uint64) {
	type subject struct {
		key K
		op  Op
	}
	later := map[subject]bool{}
	slices.Reverse(s.events)
	s.events = slices.DeleteFunc(s.events, func(e Event[K]) bool {
		if e.Kind != EventRejected {
			return e.Session == session
		}
		x := subject{e.Keys[0], e.Op}
		was := later[x]
		later[x] = true
		return was
	})
	slices.Reverse(s.events)
}
