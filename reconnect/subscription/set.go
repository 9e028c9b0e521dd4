package subscription

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Set is a set of keys to which one [reconnect.Conn] is to be subscribed. A Set is safe for concurrent use, and
// ends with its Conn.
//
// A key names one subscription at the venue, such as a symbol. It must equal itself, which a NaN does not.
type Set[K comparable] struct {
	o     Options[K]
	layer reconnect.Layer

	workers sync.WaitGroup // the workers of all sessions; End waits for them

	changed xsync.Signal // something that Wait or Synced looks at

	mu       sync.Mutex // guards what follows; never held across I/O, a wait or a function of the user
	conn     *reconnect.Conn
	entries  map[K]*entry[K]
	books    []*book[K] // of the sessions that live, two at most, in order
	rest     rest[K]
	dialed   []*dialed[K] // connections that were dialed with keys and are not open yet
	bare     int          // how many sessions are to come before a dial has keys again
	spoiled  int          // how many dials with keys were refused in a row
	lastID   uint64       // of a request
	patience patience
	order    uint64 // of an entry
	over     bool   // the Conn has ended
	err      error  // why
	stats    Stats
}

// New returns an empty Set, or an error that names the invalid option.
func New[K comparable](o *Options[K]) (*Set[K], error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Set[K]{o: options, entries: map[K]*entry[K]{}, rest: rest[K]{batch: options.Batch, groups: map[string]*group[K]{}}, patience: patience{least: options.Timeout, now: options.Timeout}}
	s.layer = reconnect.Layer{Start: s.start, Open: s.open, Ready: s.ready, Receive: s.receive, Lost: s.lost, End: s.end}
	return s, nil
}

// Layer returns the layer for the Options of the Conn. [reconnect.New] returns an error if another Conn has
// it.
func (s *Set[K]) Layer() *reconnect.Layer { return &s.layer }

// Add wants keys. It does not block. A key is wanted until Remove was called for it as often as Add, or Replace
// without it. Keys are requested in order, essential keys first. Add all known keys in one call, so that the
// first batch is full.
func (s *Set[K]) Add(keys ...K) {
	essential := s.essential(keys)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, k := range keys {
		s.add(k, essential[i], 1)
	}
	s.kick()
}

// Remove undoes one Add of each key. Keys that are not wanted are ignored.
func (s *Set[K]) Remove(keys ...K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if e := s.entries[k]; e != nil && e.refs > 0 {
			s.refer(e, e.refs-1)
		}
	}
	s.kick()
}

// Replace wants exactly these keys. A key that was wanted before needs as many calls of Remove as before, a
// new key one. A wanted key that was given up (see [DecisionDrop]) stays given up.
func (s *Set[K]) Replace(keys ...K) {
	essential := s.essential(keys)
	stay := make(map[K]struct{}, len(keys))
	for _, k := range keys {
		stay[k] = struct{}{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, e := range s.entries {
		if _, ok := stay[k]; !ok && e.refs > 0 {
			s.refer(e, 0)
		}
	}
	for i, k := range keys {
		s.add(k, essential[i], 0)
	}
	s.kick()
}

// essential calls Options.Essential with each key, without the lock.
func (s *Set[K]) essential(keys []K) []bool {
	list := make([]bool, len(keys))
	for i, k := range keys {
		list[i] = s.o.Essential != nil && s.o.Essential(k)
	}
	return list
}

// add wants a key, with so many references more, and one at least. essential is used if the key is
// new.
func (s *Set[K]) add(k K, essential bool, more int32) {
	e := s.entry(k)
	if e.refs == 0 {
		e.essential = essential
	}
	s.refer(e, max(e.refs+more, 1))
}

// entry returns the entry of a key, which is made if there is none.
func (s *Set[K]) entry(k K) *entry[K] {
	e := s.entries[k]
	if e == nil {
		s.order++
		e = &entry[K]{key: k, order: s.order}
		s.entries[k] = e
	}
	return e
}

// sorted returns all entries in order. The caller holds mu.
func (s *Set[K]) sorted() []*entry[K] {
	return slices.SortedFunc(maps.Values(s.entries), func(a, b *entry[K]) int { return cmp.Compare(a.order, b.order) })
}

// refer sets how often e is wanted. A key that was given up is asked for again when it is added, or
// removed and added.
func (s *Set[K]) refer(e *entry[K], refs int32) {
	s.change(e, func() {
		if t := e.trouble; t != nil && (refs == 0 || refs > e.refs && t.dropped != nil) {
			e.rise()
			if t.dropped = nil; !t.judging {
				e.trouble = nil
			}
		}
		e.refs = refs
	})
}

// kick wakes the workers that have something to do, and every waiter for a change.
func (s *Set[K]) kick() {
	for _, b := range s.books {
		b.kick()
	}
	s.changed.Broadcast()
}

// book returns the book of a session that lives, or nil.
func (s *Set[K]) book(session uint64) *book[K] {
	for _, b := range s.books {
		if b.number == session {
			return b
		}
	}
	return nil
}

// lead returns the book of the newest session that was ready and is not lost, or nil.
func (s *Set[K]) lead() *book[K] {
	for _, b := range slices.Backward(s.books) {
		if b.ready {
			return b
		}
	}
	return nil
}

// start is Layer.Start.
func (s *Set[K]) start(c *reconnect.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil || s.over {
		return errors.New("subscription: a Set belongs to one Conn, and this Set has one: make a Set for each Conn")
	}
	s.conn = c
	return nil
}

// ready is Layer.Ready. A later session may be ready already, because SessionReady of this one was slow.
func (s *Set[K]) ready(session uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.book(session)
	if b == nil {
		return
	}
	b.ready, s.bare = true, max(s.bare-1, 0)
	lead := s.lead()
	for _, other := range s.books {
		if other != lead && other.ready && !other.retiring {
			other.retire()
		}
	}
	s.kick()
}

// lost is Layer.Lost.
func (s *Set[K]) lost(session uint64, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.book(session); b != nil {
		b.close()
		s.kick()
	}
}

// end is Layer.End. It waits for the workers, which have no session any more.
func (s *Set[K]) end(err error) {
	s.mu.Lock()
	s.over, s.err = true, err
	for len(s.books) > 0 {
		s.books[0].close()
	}
	s.dialed = nil
	s.changed.Broadcast()
	s.mu.Unlock()
	s.workers.Wait()
}
