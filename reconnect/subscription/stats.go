package subscription

import (
	"cmp"
	"slices"
)

// Stats are counts since New, and how things stand now.
type Stats struct {
	Strays     uint64 // answers that belonged to nothing: late, second ones, or of another session
	Unanswered uint64 // requests that were not answered in time
	Refusals   uint64 // keys that were refused, each time, or whose subscription the venue has ended

	Wanted int // keys that are wanted
	Held   int // keys that the newest session which is ready has, wanted or not
}

// Stats returns the counts.
func (s *Set[K]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.stats
	for _, e := range s.entries {
		if e.refs > 0 {
			n.Wanted++
		}
		if s.lead != nil && e.at[s.lead.slot].venue == venueYes {
			n.Held++
		}
	}
	return n
}

// Item is what a Set knows of one key.
type Item[K comparable] struct {
	Key   K
	State State
	Err   error // why it was rejected last, since it was held; nil: it was not
}

// Snapshot returns all keys that are wanted, or that a session may have, in the order in which
// they were added.
func (s *Set[K]) Snapshot() []Item[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*entry[K], 0, len(s.entries))
	for _, e := range s.entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *entry[K]) int { return cmp.Compare(a.order, b.order) })
	items := make([]Item[K], len(list))
	for i, e := range list {
		items[i] = Item[K]{Key: e.key, State: s.state(e)}
		if e.trouble != nil {
			items[i].Err = e.trouble.rejected().Err
		}
	}
	return items
}

// ByTag returns the key to which the venue has given a name in a session: see Answer.Tag. It
// knows a name from the moment at which the answer is received, so before the next message is.
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
