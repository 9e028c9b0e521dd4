package ledger_test

import (
	"maps"
	"slices"
	"sync"

	"github.com/redial-go/redial/reconnect/ledger"
)

// memoryStore is a Store that lasts as long as the test. The zero value is empty.
type memoryStore struct {
	mu      sync.Mutex // guards what follows
	state   ledger.StoreState
	records map[uint64]ledger.Record
}

func (s *memoryStore) Load(each func(ledger.Record), _ func(uint64, []byte, error)) (ledger.StoreState, error) {
	s.mu.Lock()
	state, records := s.state, maps.Clone(s.records)
	s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(records)) {
		each(records[id])
	}
	return state, nil
}

func (s *memoryStore) Apply(c ledger.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records == nil {
		s.records = make(map[uint64]ledger.Record)
	}
	s.state = c.StoreState
	for _, id := range c.Delete {
		delete(s.records, id)
	}
	for _, r := range c.Put {
		r.Data = slices.Clone(r.Data)
		s.records[r.ID] = r
	}
	return nil
}
