package ledger

import (
	"fmt"
	"net"
	"time"
)

// staged is a message of Add that waits to be stored.
type staged struct {
	data []byte
	done chan struct{} // closed when id and err are set
	id   uint64
	err  error
}

// load fills the queue from the Store.
func (l *Ledger) load() error {
	now := time.Now().UnixNano()
	var maxID, maxSeq uint64
	var wrong error
	var damaged []Settled
	state, err := l.o.Store.Load(func(r Record) {
		if r.ID <= maxID || r.Seq <= maxSeq {
			wrong = fmt.Errorf("record %d (seq %d) comes after record %d (seq %d)", r.ID, r.Seq, maxID, maxSeq)
			return
		}
		maxID, maxSeq = r.ID, r.Seq
		added := min(r.Added.UnixNano(), now) // because the clock may have been set back
		l.queue.push(queued{id: r.ID, seq: r.Seq, data: r.Data, added: added, sent: true, again: true})
	}, func(id uint64, data []byte, err error) {
		damaged = append(damaged, Settled{Entry: Entry{Record: Record{ID: id, Data: data}}, Outcome: OutcomeDamaged, Err: err})
	})
	if err == nil {
		err = wrong
	}
	if err != nil {
		return err
	}
	state.LastID, state.LastSeq = max(state.LastID, maxID), max(state.LastSeq, maxSeq)
	l.state, l.sentSeq, l.unknownTo = state, state.LastSeq, state.LastID
	for _, r := range damaged {
		if r.ID > state.LastID || l.queue.byID(r.ID) != nil {
			r.ID = 0 // it is the ID of a message to come, or of one that is sound
		}
		l.damaged = append(l.damaged, r)
	}
	l.stats.Loaded = uint64(l.queue.live + len(l.damaged))
	return nil
}

// stageAndUnlock stores a message, and waits for that.
func (l *Ledger) stageAndUnlock(data []byte) (uint64, error) {
	s := &staged{data: data, done: make(chan struct{})}
	l.staged = append(l.staged, s)
	l.adding++
	l.addingSize += len(data)
	l.unlock()
	<-s.done
	return s.id, s.err
}

// startCommitting starts the goroutine commit if there is something to store. The messages of Add
// that were staged before the end are stored, or refused by that goroutine, which runs then.
func (l *Ledger) startCommitting() {
	deletes := len(l.deletes) > 0 && !l.stuck
	if l.o.Store == nil || l.committing || l.closed || len(l.staged) == 0 && l.reset == nil && !deletes {
		return
	}
	l.committing = true
	l.work.Add(1)
	go l.commit() // joined by end
}

// commit stores changes while there are some: new numbers first, then all messages that are
// staged, in one change. Messages that are settled meanwhile are deleted with the next one.
func (l *Ledger) commit() {
	defer l.work.Done()
	defer l.stopCommitting() // even if a function that was given to us ends this goroutine
	for l.commitNext() {
	}
}

// stopCommitting calls OnDone and OnStoreError, too. They may call Add, which needs the next
// goroutine.
func (l *Ledger) stopCommitting() {
	l.mu.Lock()
	l.committing = false
	if l.closed {
		l.refuseStaged()
	}
	l.unlock()
}

// commitNext makes one change. It reports whether there may be another one, and nothing to tell.
func (l *Ledger) commitNext() bool {
	l.mu.Lock()
	switch {
	case len(l.told) > 0 || len(l.failed) > 0:
	case l.reset != nil && !l.closed:
		l.commitReset(l.reset)
		return true
	case len(l.staged) > 0 || len(l.deletes) > 0 && !l.stuck:
		l.commitAdds()
		return true
	}
	l.mu.Unlock()
	return false
}

// apply makes a change, and calls then with its error while the mutex is held, even if the Store
// ends the goroutine. The caller must have released the mutex.
func (l *Ledger) apply(c Change, then func(err error)) {
	err := errNotReturned
	defer func() {
		l.mu.Lock()
		if err != nil && l.o.OnStoreError != nil {
			l.failed = append(l.failed, err)
		}
		then(err)
		l.startWriting()
		l.mu.Unlock()
	}()
	err = l.o.Store.Apply(c)
}

// commitReset stores the new numbers that begin with s. It releases the mutex.
func (l *Ledger) commitReset(s *session) {
	if !l.forgotten(s) { // another session has begun them meanwhile
		l.reset = nil
		l.goOn(s)
		l.startWriting()
		l.mu.Unlock()
		return
	}
	l.epoch = s.number
	plan := l.planReset(s)
	deletes := l.deletes
	l.deletes = nil
	change := Change{StoreState: plan.state, Put: plan.put, Delete: append(deletes[:len(deletes):len(deletes)], plan.forgets...)}
	l.mu.Unlock()
	var failure error
	defer func() {
		if failure != nil {
			l.conn.Redial(s.number, fmt.Errorf("ledger: store the new numbers: %w", failure))
		}
	}()
	l.apply(change, func(err error) {
		if l.reset == s {
			l.reset = nil
		}
		if failure = err; err == nil {
			l.applyReset(s, plan)
		} else {
			l.deletes, l.stuck = append(deletes, l.deletes...), true // and nothing is written by s
		}
	})
}

// commitAdds stores what is staged, and deletes what is settled. It releases the mutex.
func (l *Ledger) commitAdds() {
	batch, deletes := l.staged, l.deletes
	l.staged, l.deletes = nil, nil
	state, now := l.state, time.Now()
	change := Change{Delete: deletes, Put: make([]Record, len(batch))}
	for i, s := range batch {
		state.LastID++
		state.LastSeq++
		change.Put[i] = Record{ID: state.LastID, Seq: state.LastSeq, Added: now, Data: s.data}
	}
	change.StoreState = state
	l.mu.Unlock()
	l.apply(change, func(err error) {
		if err != nil {
			l.deletes, l.stuck = append(deletes, l.deletes...), true
		} else {
			l.state.LastID, l.state.LastSeq = state.LastID, state.LastSeq // AckedSeq may be higher by now
		}
		for i, s := range batch {
			if s.err = err; err == nil {
				r := change.Put[i]
				s.id = r.ID
				l.append(queued{id: r.ID, seq: r.Seq, data: s.data, added: now.UnixNano()})
			}
			l.stored(s)
		}
		l.noteEmpty()
	})
}

// refuseStaged refuses what was staged just before the end.
func (l *Ledger) refuseStaged() {
	for _, s := range l.staged {
		s.err = net.ErrClosed
		l.stored(s)
	}
	l.staged = nil
	l.noteEmpty()
}

// stored ends an Add.
func (l *Ledger) stored(s *staged) {
	l.adding--
	l.addingSize -= len(s.data)
	if s.err != nil {
		l.room.Broadcast()
	}
	close(s.done)
}
