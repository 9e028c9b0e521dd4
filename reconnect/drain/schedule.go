package drain

import (
	"container/heap"
	"math"
	"time"
)

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// after returns the time that is d after t, never if there is no such time.
func after(t, d time.Duration) time.Duration {
	if d > never-t {
		return never
	}
	return t + d
}

// slot is the place of something in a [schedule].
type slot struct {
	at    time.Duration // since the Group was made
	index int32         // in the schedule
}

func (s *slot) where() *slot { return s }

// schedule is a heap of things that are due at some time, the next one first.
type schedule[T interface{ where() *slot }] []T

// next returns when the first is due, never if there is none.
func (s schedule[T]) next() time.Duration {
	if len(s) == 0 {
		return never
	}
	return s[0].where().at
}

// add puts x into the schedule.
func (s *schedule[T]) add(x T) { heap.Push(s, x) }

// remove takes x out of the schedule, in which it must be.
func (s *schedule[T]) remove(x T) { heap.Remove(s, int(x.where().index)) }

// moved is called when the time of x was changed.
func (s *schedule[T]) moved(x T) { heap.Fix(s, int(x.where().index)) }

// sort is called when the times of many were changed.
func (s *schedule[T]) sort() { heap.Init(s) }

// The rest is for package heap.

func (s schedule[T]) Len() int           { return len(s) }
func (s schedule[T]) Less(i, j int) bool { return s[i].where().at < s[j].where().at }

func (s schedule[T]) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].where().index, s[j].where().index = int32(i), int32(j)
}

func (s *schedule[T]) Push(x any) {
	x.(T).where().index = int32(len(*s))
	*s = append(*s, x.(T))
}

func (s *schedule[T]) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	clear((*s)[last:])
	*s = (*s)[:last]
	return x
}
