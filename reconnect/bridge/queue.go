package bridge

import "time"

// queue is the streams that wait for a fetch: a heap, by the time from which they wait. push and remove
// take logarithmic time. The heap has the times, because the streams are seldom in the processor's cache.
type queue[K comparable, T any] struct {
	heap   []turn[K, T]
	pushed uint64 // streams so far
	visits int    // comparisons so far: a test limits them
}

// turn is the place of a stream in the queue.
type turn[K comparable, T any] struct {
	from   time.Time // when the fetch may begin
	number uint64    // of turns with the same time the lower number goes first
	s      *stream[K, T]
}

// push adds a stream that is not in the queue. It may be fetched from s.due on; a zero due is now.
func (q *queue[K, T]) push(s *stream[K, T]) {
	q.pushed++
	from := s.due
	if from.IsZero() {
		from = time.Now()
	}
	q.heap = append(q.heap, turn[K, T]{from, q.pushed, s})
	q.fix(len(q.heap) - 1)
}

// remove takes a stream out of the queue, if it is there.
func (q *queue[K, T]) remove(s *stream[K, T]) {
	i, last := s.rank-1, len(q.heap)-1
	if i < 0 {
		return
	}
	q.heap[i], q.heap[last] = q.heap[last], turn[K, T]{} // so that the stream is not kept
	q.heap = q.heap[:last]
	if s.rank = 0; i < last {
		q.fix(i)
	}
}

// first returns the stream whose turn is first, and when its fetch may begin; nil: no stream waits.
func (q *queue[K, T]) first() (*stream[K, T], time.Time) {
	if len(q.heap) == 0 {
		return nil, time.Time{}
	}
	return q.heap[0].s, q.heap[0].from
}

// fix moves a turn that is new at the index i up or down to its place.
func (q *queue[K, T]) fix(i int) {
	t := q.heap[i]
	for i > 0 && q.before(t, q.heap[(i-1)/2]) {
		q.put(i, q.heap[(i-1)/2])
		i = (i - 1) / 2
	}
	for child := 2*i + 1; child < len(q.heap); child = 2*i + 1 {
		if child+1 < len(q.heap) && q.before(q.heap[child+1], q.heap[child]) {
			child++
		}
		if !q.before(q.heap[child], t) {
			break
		}
		q.put(i, q.heap[child])
		i = child
	}
	q.put(i, t)
}

func (q *queue[K, T]) put(i int, t turn[K, T]) { q.heap[i], t.s.rank = t, i+1 }

func (q *queue[K, T]) before(a, b turn[K, T]) bool {
	q.visits++
	return a.from.Before(b.from) || a.number < b.number && a.from.Equal(b.from)
}
