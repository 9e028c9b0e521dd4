package bridge

import (
	"errors"
	"fmt"
	"time"
)

// giveUp notes that what is missing cannot be had.
func (b *Bridge[K, T]) giveUp(s *stream[K, T], err error) {
	s.hopeless = err
	b.lose(s)
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
	first := s.hold.first()
	behind := s.cursor.Offset
	if s.apart { // the numbers of head are not those of the cursor
		behind = 0
	}
	if first == 0 && s.head <= behind {
		return // the next live item tells what is missing
	}
	if s.apart && s.known { // the rest of the last epoch, which a snapshot should have replaced
		b.push(Event[K, T]{Kind: EventLost, Item: Item[K, T]{Key: s.key, Epoch: s.cursor.Epoch, First: s.cursor.Offset + 1}, Err: fmt.Errorf("%w: %w", ErrNewEpoch, s.hopeless)})
	}
	if s.apart || !s.known || s.cursor == (Cursor{}) {
		s.cursor, s.known, s.apart = Cursor{Epoch: s.epoch}, true, false
		lost.Epoch = s.epoch
	}
	all := errors.Is(s.hopeless, errNoPast)
	s.reset = false
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
