package bridge

import (
	"errors"
	"fmt"
	"time"
)

// giveUp notes that what is missing cannot be had. If that is the snapshot of a new epoch, Past may have that epoch from its beginning.
func (b *Bridge[K, T]) giveUp(s *stream[K, T], err error) {
	s.hopeless = err
	if s.apart && s.known && b.o.Past != nil {
		b.enterEpoch(s)
		s.hopeless, s.failed, s.lacking, s.pages = nil, nil, time.Time{}, 0
		b.wait(s, time.Time{})
		return
	}
	b.lose(s)
}

// enterEpoch sets the cursor to the beginning of the epoch of what is held. The rest of the last epoch is lost.
func (b *Bridge[K, T]) enterEpoch(s *stream[K, T]) {
	if s.known {
		rest := Item[K, T]{Key: s.key, Epoch: s.cursor.Epoch, First: s.cursor.Offset + 1}
		b.push(Event[K, T]{Kind: EventLost, Item: rest, Err: fmt.Errorf("%w: %w", ErrNewEpoch, s.hopeless)})
	}
	s.cursor, s.entered, s.known, s.apart, s.reset = Cursor{Epoch: s.epoch}, s.known, true, false, false
}

// lose tells the reader what is lost, as soon as it is known, and goes on after it.
func (b *Bridge[K, T]) lose(s *stream[K, T]) {
	lost := Event[K, T]{Kind: EventLost, Item: Item[K, T]{Key: s.key, Epoch: s.cursor.Epoch}, Err: s.hopeless}
	if !s.numbered { // the next items are taken without a number
		b.push(lost)
		s.known, s.reset, s.apart = false, false, false
		b.drain(s)
		b.heal(s)
		return
	}
	s.reset = false // a snapshot cannot be had
	first := s.hold.first()
	behind := s.cursor.Offset
	if s.apart { // the numbers of head are not those of the cursor
		behind = 0
	}
	if first == 0 && s.head <= behind {
		return // the next live item tells what is missing
	}
	switch {
	case s.apart:
		b.enterEpoch(s)
	case !s.known || s.cursor == (Cursor{}):
		s.cursor, s.known = Cursor{Epoch: s.epoch}, true
	}
	lost.Epoch = s.cursor.Epoch
	all := errors.Is(s.hopeless, errNoPast)
	for ; first > 0; first = s.hold.first() {
		lost.First, lost.Last = s.cursor.Offset+1, first-1
		if lost.Last >= lost.First {
			b.push(lost)
			s.cursor = Cursor{lost.Epoch, lost.Last}
		}
		b.drain(s)
		if !all && s.open() {
			break
		}
	}
	if first == 0 && s.head > s.cursor.Offset { // for the rest there was no room
		lost.First, lost.Last = s.cursor.Offset+1, s.head
		b.push(lost)
		s.cursor = Cursor{lost.Epoch, lost.Last}
	}
	if !all && (s.open() || s.proof != s.round) { // perhaps the next gap can be closed, or the end is not known
		s.hopeless = nil
		b.wait(s, time.Time{})
		return
	}
	b.heal(s)
}
