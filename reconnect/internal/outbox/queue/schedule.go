package queue

import "container/heap"

// schedule finds the item that expires first. Items that are added in the order in which
// they expire form a list, where adding and removing takes constant time: those that may
// wait equally long do. The others are in a heap.
type schedule[T any] struct {
	first, last *Item[T]
	others      deadlines[T]
}

// inList is the rank of an item in the list.
const inList = -1

func (s *schedule[T]) add(item *Item[T]) {
	switch {
	case s.last == nil:
		s.first = item
	case item.Expires.Before(s.last.Expires):
		heap.Push(&s.others, item)
		return
	default:
		item.earlier, s.last.later = s.last, item
	}
	s.last, item.rank = item, inList
}

// remove takes out an item that was added.
func (s *schedule[T]) remove(item *Item[T]) {
	if item.rank != inList {
		heap.Remove(&s.others, item.rank-1)
		return
	}
	if item.earlier == nil {
		s.first = item.later
	} else {
		item.earlier.later = item.later
	}
	if item.later == nil {
		s.last = item.earlier
	} else {
		item.later.earlier = item.earlier
	}
	item.earlier, item.later, item.rank = nil, nil, 0
}

// next returns the item that expires first, or nil.
func (s *schedule[T]) next() *Item[T] {
	if len(s.others) > 0 && (s.first == nil || s.others[0].Expires.Before(s.first.Expires)) {
		return s.others[0]
	}
	return s.first
}
