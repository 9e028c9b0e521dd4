package queue

import "time"

// Tapped is a [Queue] whose steps a test can see.
type Tapped[T any] struct{ Queue[T] }

// Tap gets each step of each Tapped. Only a test sets Tap, before there is a Tapped. Nil: no step is kept, and a call costs
// one comparison more than that of the Queue.
var Tap func(Step)

// Step is one call of a method of a [Queue], when it has returned.
type Step struct {
	Queue   any // which one
	Call    string
	Item    Entry // the argument of Add, PutBack and Remove, and the answer of Next
	Now     time.Time
	Err     error // of Add
	Limits  Limits
	Skipped []any // the items up to the Cursor of Next; none of them may go
	Passed  []any // the other items that may not go, of Next
	Dropped map[any]Reason

	// The Queue after the call.
	Items    []any
	Messages int
	Bytes    int
	Earliest time.Time
}

// Entry is an item. ID is its address, or nil if there is none.
type Entry struct {
	ID      any
	Size    int
	Free    bool
	Key     string
	Expires time.Time
}

// Add is [Queue.Add].
func (q *Tapped[T]) Add(item *Item[T], now time.Time) (err error) {
	if Tap == nil {
		return q.Queue.Add(item, now)
	}
	q.tap(Step{Call: "Add", Now: now, Item: entry(item)}, func(s *Step) { err = q.Queue.Add(item, now); s.Err = err })
	return err
}

// Next is [Queue.Next].
func (q *Tapped[T]) Next(now time.Time, c *Cursor[T], may func(*Item[T]) bool) (item *Item[T]) {
	if Tap == nil {
		return q.Queue.Next(now, c, may)
	}
	q.tap(Step{Call: "Next", Now: now}, func(s *Step) {
		for i := q.first; i != q.after(c); i = i.next {
			if !may(i) { // else the Cursor is wrong, and Tap finds it
				s.Skipped = append(s.Skipped, i)
			}
		}
		item = q.Queue.Next(now, c, func(i *Item[T]) bool {
			ok := may(i)
			if !ok {
				s.Passed = append(s.Passed, i)
			}
			return ok
		})
		if item != nil {
			s.Item = entry(item)
		}
	})
	return item
}

// PutBack is [Queue.PutBack].
func (q *Tapped[T]) PutBack(item *Item[T]) {
	if Tap == nil {
		q.Queue.PutBack(item)
		return
	}
	q.tap(Step{Call: "PutBack", Item: entry(item)}, func(*Step) { q.Queue.PutBack(item) })
}

// Remove is [Queue.Remove].
func (q *Tapped[T]) Remove(item *Item[T]) {
	if Tap == nil {
		q.Queue.Remove(item)
		return
	}
	q.tap(Step{Call: "Remove", Item: entry(item)}, func(*Step) { q.Queue.Remove(item) })
}

// Expire is [Queue.Expire].
func (q *Tapped[T]) Expire(now time.Time) {
	if Tap == nil {
		q.Queue.Expire(now)
		return
	}
	q.tap(Step{Call: "Expire", Now: now}, func(*Step) { q.Queue.Expire(now) })
}

func entry[T any](i *Item[T]) Entry { return Entry{i, i.Size, i.Free, i.Key, i.Expires} }

// tap does what call does, and gives Tap the step.
func (q *Tapped[T]) tap(s Step, call func(*Step)) {
	dropped := q.Dropped
	q.Dropped = func(i *Item[T], why Reason) {
		if s.Dropped == nil {
			s.Dropped = make(map[any]Reason)
		}
		s.Dropped[i] = why
		dropped(i, why)
	}
	defer func() { q.Dropped = dropped }()
	call(&s)
	s.Queue, s.Limits = q, q.Limits
	for i := range q.All() {
		s.Items = append(s.Items, i)
	}
	s.Messages, s.Bytes = q.Size()
	s.Earliest = q.Earliest()
	Tap(s)
}
