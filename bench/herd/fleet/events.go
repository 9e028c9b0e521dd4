package fleet

import (
	"cmp"
	"slices"

	"github.com/redial-go/redial/bench/internal/event"
)

// events is the event queue of a herd. Events lie unsorted, by spans of time; a span is sorted when its
// time comes. Only an event of the present span goes into a real queue, which is small then. Events of
// one instant come out in the order in which they were put in.
type events struct {
	far     [][]due // by span; what is due after the last span never happens
	span    int     // the present one
	present []due   // what was put in before the present span began, in order
	near    event.Queue[int32]
}

// due is an event of a client, or of something else whose number is below 0.
type due struct {
	at  int64
	who int32
}

const spanBits = 24 // 2^24 ns = 17 ms

func newEvents(end int64) events { return events{far: make([][]due, end>>spanBits+1)} }

func (q *events) push(at int64, who int32) {
	switch span := int(at >> spanBits); {
	case span >= len(q.far):
	case span <= q.span:
		q.near.Push(at, who)
	default:
		q.far[span] = append(q.far[span], due{at, who})
	}
}

func (q *events) pop() (at int64, who int32, ok bool) {
	for {
		next, some := q.near.Next()
		switch {
		case len(q.present) > 0 && (!some || q.present[0].at <= next):
			first := q.present[0]
			q.present = q.present[1:]
			return first.at, first.who, true
		case some:
			return q.near.Pop()
		case q.span+1 == len(q.far):
			return 0, 0, false
		}
		q.span++
		q.present, q.far[q.span] = q.far[q.span], nil
		slices.SortStableFunc(q.present, func(a, b due) int { return cmp.Compare(a.at, b.at) })
	}
}
