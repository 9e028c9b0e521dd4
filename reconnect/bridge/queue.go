package bridge

import (
	"container/heap"
	"time"
)

// queue is the streams that wait for a fetch, by the time from which they wait for their turn. It is
// a heap: push and remove take logarithmic time.
type queue[K comparable, T any] struct {
	heap   waiting[K, T]
	pushed uint64 // streams so far
}

// turn is the place of a stream in the queue. The queue changes it.
type turn struct {
	from   time.Time // when the fetch may begin
	number uint64    // of streams with the same time the lower number goes first
	rank   int       // index in the heap, plus 1; 0: the stream is not in the queue
}

// push adds a stream that is not in the queue. It may be fetched from s.due on; a zero due is now.
func (q *queue[K, T]) push(s *stream[K, T]) {
	q.pushed++
	s.turn = turn{from: s.due, number: q.pushed}
	if s.due.IsZero() {
		s.turn.from = time.Now()
	}
	heap.Push(&q.heap, s)
}

// remove takes a stream out of the queue, if it is there.
func (q *queue[K, T]) remove(s *stream[K, T]) {
	if s.turn.rank > 0 {
		heap.Remove(&q.heap, s.turn.rank-1)
	}
}

// first returns the stream whose turn is first, or nil.
func (q *queue[K, T]) first() *stream[K, T] {
	if len(q.heap) == 0 {
		return nil
	}
	return q.heap[0]
}

// waiting is a heap of streams. See [container/heap].
type waiting[K comparable, T any] []*stream[K, T]

func (w waiting[K, T]) Len() int { return len(w) }

func (w waiting[K, T]) Less(i, j int) bool {
	a, b := &w[i].turn, &w[j].turn
	if !a.from.Equal(b.from) {
		return a.from.Before(b.from)
	}
	return a.number < b.number
}

func (w waiting[K, T]) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].turn.rank, w[j].turn.rank = i+1, j+1
}

func (w *waiting[K, T]) Push(s any) {
	*w = append(*w, s.(*stream[K, T]))
	(*w)[len(*w)-1].turn.rank = len(*w)
}

func (w *waiting[K, T]) Pop() any {
	last := len(*w) - 1
	s := (*w)[last]
	(*w)[last] = nil // so that it is not kept
	*w = (*w)[:last]
	s.turn.rank = 0
	return s
}
