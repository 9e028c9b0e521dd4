package subscription

import (
	"cmp"
	"slices"
)

// Stats are counts since New, and the numbers of keys now.
type Stats struct {
	Strays     uint64 // answers that belonged to no request on its way: late, repeated, or of another session
	Unanswered uint64 // requests that were not answered in time
	Refusals   uint64 // refused keys, counted at each refusal, and keys whose subscription the venue has ended

	Wanted int // keys that are wanted
	Held   int // keys that the newest ready session holds, wanted or not
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

// Item is the state of one key.
type Item[K comparable] struct {
	Key   K
	State State
	Err   error // of the last rejection since the key was held; nil: none
}

// Snapshot returns all keys that are wanted, or that a session may hold, in the order in which they
// were added.
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

// ByTag returns the key to which the venue has given a tag in a session: see Answer.Tag. The tag is
// known when the answer is received, so before the next message is read.
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
