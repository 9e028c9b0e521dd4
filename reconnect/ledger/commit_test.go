package ledger_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/ledger"
)

// troubledStore is a memoryStore that can be slow, and can fail.
type troubledStore struct {
	memoryStore
	mu      sync.Mutex // guards what follows
	err     error
	took    time.Duration // by each Apply
	applied []ledger.Change
	damaged map[uint64]string
}

func (s *troubledStore) Load(each func(ledger.Record), damaged func(uint64, []byte, error)) (ledger.StoreState, error) {
	for id, data := range s.damaged {
		damaged(id, []byte(data), errors.New("checksum"))
	}
	return s.memoryStore.Load(each, damaged)
}

func (s *troubledStore) Apply(c ledger.Change) error {
	s.mu.Lock()
	err, took := s.err, s.took
	s.applied = append(s.applied, c)
	s.mu.Unlock()
	if time.Sleep(took); err != nil {
		return err
	}
	return s.memoryStore.Apply(c)
}

// fail lets each Apply fail; nil: succeed.
func (s *troubledStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// slow lets each Apply take that long.
func (s *troubledStore) slow(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = took
}

var errDisk = errors.New("disk full")

func TestMessagesOutliveTheProgram(t *testing.T) {
	var store memoryStore
	withLedger(t, ledger.Options{Store: &store}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		s.add("a", "b", "c")
		require.NoError(t, s.ledger.AckedTo(1, 1))
	})
	withLedger(t, ledger.Options{Store: &store}, func(t *testing.T, s *ledgerScene) {
		s.add("d")
		s.open()
		require.Equal(t, "2:b again, 3:c again, 4:d", sent(s.accept()))
		require.ErrorIs(t, s.ledger.Wait(t.Context(), 1), ledger.ErrUnknown)
		require.NoError(t, s.ledger.AckedTo(1, 4))
	})
	withLedger(t, ledger.Options{Store: &store}, func(t *testing.T, s *ledgerScene) {
		s.add("e")
		require.Equal(t, uint64(5), s.ledger.Unacked()[0].ID, "the numbers go on though nothing was left")
	})
}

// A peer that has lost what it acknowledged in an earlier run is noticed, and the Store is not written
// more often for that.
func TestAPeerThatHasLostMessagesIsNoticedAfterARestart(t *testing.T) {
	store := &troubledStore{}
	withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		s.add("a", "b", "c", "d")
		store.slow(time.Second)
		go s.ledger.Add([]byte("e"))
		synctest.Wait()
		require.NoError(t, s.ledger.AckedTo(1, 3)) // while the store is busy
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, store.applied, 6, "each Add, and the deletion")
		store.slow(0)
	})
	for have, want := range map[uint64]string{2: "ledger: peer has numbers up to 2, but has acknowledged numbers up to 3 before", 3: ""} {
		withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
			var err error
			s.resume = func(o *reconnect.Opening) error {
				err = s.ledger.Resume(o, have, true)
				return err
			}
			s.open()
			s.accept()
			if want != "" {
				require.EqualError(t, err, want)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// What the peer has acknowledged of the old numbers says nothing of the new ones.
func TestNewNumbersAreAcknowledgedAnewAfterARestart(t *testing.T) {
	store := &memoryStore{}
	o := ledger.Options{Store: store}
	withLedger(t, o, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "b", "c", "d")
		require.NoError(t, s.ledger.AckedTo(1, 2))
		peer.Fail(errLedgerLost)
		s.resume = resumed(s.ledger, 0, false)
		s.accept()
	})
	withLedger(t, o, func(t *testing.T, s *ledgerScene) {
		s.resume = resumed(s.ledger, 1, true)
		s.open()
		require.Equal(t, "2:d again", sent(s.accept()))
		require.Equal(t, []string{"3 acknowledged"}, s.outcomes())
	})
}

func TestAnAddThatIsNotStoredFails(t *testing.T) {
	store := &troubledStore{err: errDisk}
	var told []error
	o := ledger.Options{Store: store, Messages: 1, OnStoreError: func(err error) { told = append(told, err) }}
	withLedger(t, o, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		_, err := s.ledger.Add([]byte("a"))
		require.ErrorIs(t, err, errDisk)
		require.Equal(t, "", sent(peer))
		store.fail(nil)
		s.add("b")
		require.Equal(t, "1:b", sent(peer))
		require.Equal(t, []error{errDisk}, told)
	})
}

// Until the Store has failed, a message that waits to be stored takes room, and Wait waits for it.
func TestAnAddThatIsNotStoredGivesBackItsRoom(t *testing.T) {
	store := &troubledStore{err: errDisk, took: time.Second}
	withLedger(t, ledger.Options{Store: store, Messages: 1}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		var work sync.WaitGroup
		defer work.Wait()
		work.Go(func() {
			_, err := s.ledger.Add([]byte("a"))
			require.ErrorIs(t, err, errDisk)
		})
		synctest.Wait()
		work.Go(func() { require.NoError(t, s.ledger.WaitAll(t.Context())) })
		work.Go(func() {
			_, err := s.ledger.AddWait(t.Context(), []byte("b"))
			require.ErrorIs(t, err, errDisk)
		})
		synctest.Wait()
		_, err := s.ledger.Add([]byte("c"))
		require.ErrorIs(t, err, ledger.ErrFull)
	})
}

// Messages that are added while the store is busy are stored together, in the order of their IDs.
func TestMessagesAreStoredTogether(t *testing.T) {
	store := &troubledStore{took: time.Second}
	withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		var adds sync.WaitGroup
		for i := range 10 {
			time.Sleep(time.Millisecond)
			adds.Go(func() {
				id, err := s.ledger.Add(fmt.Append(nil, i))
				require.NoError(t, err)
				require.Equal(t, uint64(i+1), id)
			})
		}
		adds.Wait()
		require.Equal(t, "1:0, 2:1, 3:2, 4:3, 5:4, 6:5, 7:6, 8:7, 9:8, 10:9", sent(peer))
		require.Len(t, store.applied, 2)
		require.Len(t, store.applied[1].Put, 9)
	})
}

func TestMessagesInTheStoreCountAsRoomTaken(t *testing.T) {
	store := &troubledStore{took: time.Second}
	withLedger(t, ledger.Options{Store: store, Messages: 2}, func(t *testing.T, s *ledgerScene) {
		go s.ledger.Add(nil)
		synctest.Wait()
		go s.ledger.Add(nil)
		synctest.Wait()
		_, err := s.ledger.Add(nil)
		require.ErrorIs(t, err, ledger.ErrFull)
		time.Sleep(time.Minute)
		require.Equal(t, 2, s.ledger.Stats().Unacked)
	})
}

// A deletion that failed is tried again with the next change, and at the end.
func TestADeletionThatFailedIsTriedAgain(t *testing.T) {
	store := &troubledStore{}
	withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		s.add("a", "b")
		store.fail(errDisk)
		require.NoError(t, s.ledger.AckedTo(1, 1))
		synctest.Wait()
		n := len(store.applied)
		time.Sleep(time.Hour)
		require.Len(t, store.applied, n, "it is not tried in a loop")
		store.fail(nil)
		require.NoError(t, s.ledger.AckedTo(1, 2))
		synctest.Wait()
		require.ElementsMatch(t, []uint64{1, 2}, store.applied[n].Delete)
		s.add("c")
		store.fail(errDisk)
		require.NoError(t, s.ledger.AckedTo(1, 3))
		synctest.Wait()
		store.fail(nil)
	})
	o := ledger.Options{Store: store}
	withLedger(t, o, func(t *testing.T, s *ledgerScene) { require.Empty(t, s.ledger.Unacked()) })
}

// New numbers that cannot be stored are not used: the session ends, and the next tries again.
func TestNewNumbersThatAreNotStoredAreNotUsed(t *testing.T) {
	store := &troubledStore{}
	withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
		s.options.CloseTimeout = -1
		s.open()
		peer := s.accept()
		s.add("a", "b")
		require.NoError(t, s.ledger.AckedTo(1, 1))
		synctest.Wait()
		store.fail(errDisk)
		peer.Fail(errLedgerLost)
		s.resume = func(o *reconnect.Opening) error { return s.ledger.ResumeEpoch(o, "x", 0) }
		peer = s.accept()
		require.Equal(t, "", sent(peer))
		require.ErrorIs(t, s.conn.Status().Err, errDisk)
		store.fail(nil)
		require.Equal(t, "1:b", sent(s.accept()))
	})
	withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
		require.Equal(t, uint64(1), s.ledger.Unacked()[0].Seq)
		require.Equal(t, uint64(2), s.ledger.Unacked()[0].ID)
	})
}

// What cannot be read is reported, and stays in the Store for whoever may still mend it.
func TestADamagedRecordIsReportedAndNotDeleted(t *testing.T) {
	store := &troubledStore{damaged: map[uint64]string{7: "half"}}
	require.NoError(t, store.memoryStore.Apply(ledger.Change{StoreState: ledger.StoreState{LastID: 7, LastSeq: 7}}))
	for range 2 { // in each run
		var got ledger.Settled
		o := ledger.Options{Store: store, OnDone: func(r ledger.Settled) { got = r }}
		withLedger(t, o, func(t *testing.T, s *ledgerScene) {
			s.open()
			require.Equal(t, []string{"7 damaged"}, s.outcomes())
			require.EqualError(t, got.Err, "checksum")
			require.Equal(t, "half", string(got.Data))
			require.Equal(t, ledger.OutcomeDamaged, outcomeOf(s.ledger.Wait(t.Context(), 7)))
			s.accept()
			id, err := s.ledger.Add([]byte("a"))
			require.NoError(t, err)
			require.Greater(t, id, uint64(7))
			synctest.Wait() // until it is sent
			require.NoError(t, s.ledger.AckedTo(1, s.ledger.Unacked()[0].Seq))
		})
	}
	for _, change := range store.applied {
		require.NotContains(t, change.Delete, uint64(7))
	}
}

// outcomeOf returns what Wait says.
func outcomeOf(err error) ledger.Outcome {
	if e, ok := errors.AsType[*ledger.OutcomeError](err); ok {
		return e.Outcome
	}
	return ledger.OutcomeAcknowledged
}

// A damaged key may be the ID of another message: one to come, or one that is sound. That message
// must not be deleted, and has an outcome of its own. So the damaged one is reported with the ID 0.
func TestADamagedKeyCostsNoOtherMessage(t *testing.T) {
	store := &troubledStore{damaged: map[uint64]string{1: "half", 2: "half"}}
	require.NoError(t, store.memoryStore.Apply(ledger.Change{
		StoreState: ledger.StoreState{LastID: 1, LastSeq: 1}, Put: []ledger.Record{{ID: 1, Seq: 1, Data: []byte("sound")}},
	}))
	withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
		s.add("a")
		s.open()
		require.Equal(t, []string{"0 damaged", "0 damaged"}, s.outcomes())
		time.Sleep(time.Hour)
		s.add("b")
		require.Len(t, s.ledger.Unacked(), 3)
		for _, change := range store.applied {
			require.Empty(t, change.Delete)
		}
		s.accept()
		synctest.Wait()
		require.NoError(t, s.ledger.AckedTo(1, 2))
		require.ErrorIs(t, s.ledger.Wait(t.Context(), 1), ledger.ErrUnknown)
		require.NoError(t, s.ledger.Wait(t.Context(), 2))
	})
}

// OnDone runs in the goroutine that stores, which must not wait for itself.
func TestOnDoneMayAdd(t *testing.T) {
	var l *ledger.Ledger
	added := 0
	o := ledger.Options{Store: &memoryStore{}, Messages: 2, DropOldest: true}
	o.OnDone = func(r ledger.Settled) {
		if r.Outcome == ledger.OutcomeDropped && r.ID == 1 {
			_, err := l.Add([]byte("again"))
			require.NoError(t, err)
			added++
		}
	}
	withLedger(t, o, func(t *testing.T, s *ledgerScene) {
		l = s.ledger
		s.open()
		s.add("a", "b", "c")
		require.Equal(t, []string{"1 dropped", "2 dropped"}, s.outcomes())
		require.Equal(t, 1, added)
	})
}

// An Add that waits for the store when the Conn ends gets its answer, and nothing goes on.
func TestTheEndWaitsForTheStore(t *testing.T) {
	store := &troubledStore{took: time.Second}
	withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		errs := make(chan error, 2)
		for range 2 {
			go func() { _, err := s.ledger.Add(nil); errs <- err }()
			synctest.Wait()
		}
		s.close()
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Equal(t, []string{"1 left", "2 left"}, s.outcomes())
	})
	require.Len(t, store.applied, 2)
}

// noLoad is a store that cannot be read.
type noLoad struct{ memoryStore }

func (*noLoad) Load(func(ledger.Record), func(uint64, []byte, error)) (ledger.StoreState, error) {
	return ledger.StoreState{}, errDisk
}

// backwards is a store whose records are out of order.
type backwards struct{ memoryStore }

func (*backwards) Load(each func(ledger.Record), _ func(uint64, []byte, error)) (ledger.StoreState, error) {
	each(ledger.Record{ID: 2, Seq: 2})
	each(ledger.Record{ID: 1, Seq: 1})
	return ledger.StoreState{LastID: 2, LastSeq: 2}, nil
}

func TestAStoreThatCannotBeReadIsAnError(t *testing.T) {
	_, err := ledger.New(&ledger.Options{Store: &noLoad{}})
	require.EqualError(t, err, "ledger: load the store: disk full")
	_, err = ledger.New(&ledger.Options{Store: &backwards{}})
	require.ErrorContains(t, err, "record 1 (seq 1) comes after record 2 (seq 2)")
}

// The number of a message is in the state, too, because the record is deleted when the peer has it.
func TestTheStoreHasTheNumberOfAMessageAtOnce(t *testing.T) {
	store := &troubledStore{}
	withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		s.add("a", "b")
		require.EqualValues(t, 2, store.applied[1].LastID)
		require.EqualValues(t, 2, store.applied[1].LastSeq)
	})
}

// The clock was a year ahead in the run before.
func TestNoMessageIsLoadedFromTheFuture(t *testing.T) {
	store := &memoryStore{}
	withLedger(t, ledger.Options{Store: store, Age: time.Hour}, func(t *testing.T, s *ledgerScene) {
		added := time.Now().Add(365 * 24 * time.Hour)
		require.NoError(t, store.Apply(ledger.Change{Put: []ledger.Record{{ID: 1, Seq: 1, Added: added}}}))
		var err error
		s.ledger, err = ledger.New(&ledger.Options{Store: store, Age: time.Hour, Encode: encodeEntry})
		require.NoError(t, err)
		require.Equal(t, time.Now(), s.ledger.Unacked()[0].Added)
		s.open()
		s.accept()
		time.Sleep(time.Hour)
		require.ErrorIs(t, s.ledger.Wait(t.Context(), 1), ledger.ErrExpired)
	})
}
