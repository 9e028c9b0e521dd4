package subscription

// Stats are counts since [New], and current numbers of keys.
type Stats struct {
	Strays     uint64 // answers to no request in flight: late, repeated, or of another session
	Unanswered uint64 // requests without an answer in time
	Refusals   uint64 // refusals of a key, and subscriptions ended by the venue

	Wanted int
	Held   int // keys that the newest ready session holds, wanted or not
}

// Stats returns the counts.
func (s *Set[K]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, lead := s.stats, s.lead()
	for _, e := range s.entries {
		if e.refs > 0 {
			n.Wanted++
		}
		if lead != nil && e.at[lead.slot].venue == venueYes {
			n.Held++
		}
	}
	return n
}

// Item is the state of one key.
type Item[K comparable] struct {
	Key   K
	State State
	Err   error // last rejection since the key was held, or nil
}

// Snapshot returns all keys that are wanted, or that a session may hold, in the order of their addition.
func (s *Set[K]) Snapshot() []Item[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := make([]Item[K], len(s.entries))
	for i, e := range s.sorted() {
		items[i] = Item[K]{Key: e.key, State: s.state(e)}
		if e.trouble != nil {
			items[i].Err = e.trouble.rejected().Err
		}
	}
	return items
}

// ByTag returns the key with this Answer.Tag in a session, known before the message after the answer is read.
func (s *Set[K]) ByTag(session uint64, tag string) (k K, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.book(session); b != nil {
		if e := b.byTag[tag]; e != nil {
			return e.key, true
		}
	}
	return k, false
}
