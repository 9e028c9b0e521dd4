package queue

import (
	"slices"
	"time"
)

// epoch is the present of every state.
var epoch = time.Unix(1_000_000, 0)

// unit is the step of the clock in a walk.
const unit = time.Second

// moment is a time in units from the present on.
type moment int8

const (
	never    moment = -128 // the zero time
	earliest moment = -2   // what is further back makes no difference
)

func (m moment) time() time.Time {
	if m == never {
		return time.Time{}
	}
	return epoch.Add(time.Duration(m) * unit)
}

// momentOf returns t as a moment.
func momentOf(t time.Time) moment {
	if t.IsZero() {
		return never
	}
	return max(moment(t.Sub(epoch)/unit), earliest)
}

// later returns m when a unit has passed.
func (m moment) later() moment {
	if m == never {
		return never
	}
	return max(m-1, earliest)
}

// most is how many messages there are in a walk.
const most = 3

// row is a list of messages; the rest of it is nobody.
type row [most]int8

const nobody = -1

var empty = row{nobody, nobody, nobody}

func rowOf(ids []int8) row {
	r := empty
	copy(r[:], ids)
	return r
}

// ids returns those that are in the row.
func (r *row) ids() []int8 {
	if n := slices.Index(r[:], nobody); n >= 0 {
		return r[:n]
	}
	return r[:]
}

// frozen is a Queue as plain values: its items, those that expire as they are in the list and in the heap, and
// the item of each key.
type frozen struct {
	items  row
	list   row
	heap   row
	keys   [2]int8 // of "a" and "b"
	count  int8
	bytes  int8
	queued [most]bool
}

var keyNames = [2]string{"a", "b"}

// thawed is a Queue, with an item for each message.
type thawed struct {
	Queue[int8]
	all [most]*Item[int8]
}

// thaw returns the Queue. The messages have the lives that are given.
func (f *frozen) thaw(c *config, lives [most]moment) *thawed {
	q := &thawed{}
	q.Limits, q.count, q.bytes = c.Limits, int(f.count), int(f.bytes)
	for i := range q.all {
		s := c.specs[i]
		q.all[i] = &Item[int8]{Value: int8(i), Size: s.size, Free: s.free, Key: s.key, Expires: lives[i].time(), queued: f.queued[i]}
	}
	for n, i := range f.items.ids() {
		item := q.all[i]
		if n == 0 {
			q.first = item
		} else {
			item.prev, q.last.next = q.last, item
		}
		q.last = item
	}
	for n, i := range f.list.ids() {
		item := q.all[i]
		item.rank = inList
		if n == 0 {
			q.expiring.first = item
		} else {
			item.earlier, q.expiring.last.later = q.expiring.last, item
		}
		q.expiring.last = item
	}
	for n, i := range f.heap.ids() {
		q.all[i].rank = n + 1
		q.expiring.others = append(q.expiring.others, q.all[i])
	}
	for n, i := range f.keys {
		if i != nobody {
			if q.keys == nil {
				q.keys = map[string]*Item[int8]{}
			}
			q.keys[keyNames[n]] = q.all[i]
		}
	}
	return q
}

// freeze returns q as plain values, and what is wrong with its links.
func freeze(q *thawed) (f frozen, wrong string) {
	f = frozen{items: empty, list: empty, heap: empty, keys: [2]int8{nobody, nobody}, count: int8(q.count), bytes: int8(q.bytes)}
	var items, list, heap []int8
	for i, before := q.first, (*Item[int8])(nil); i != nil; i, before = i.next, i {
		if items = append(items, i.Value); i.prev != before || len(items) > most {
			return f, "the list is broken"
		}
		if i.next == nil && q.last != i {
			return f, "the list ends elsewhere"
		}
	}
	if q.first == nil && q.last != nil {
		return f, "an empty list has an end"
	}
	for i, before := q.expiring.first, (*Item[int8])(nil); i != nil; i, before = i.later, i {
		if list = append(list, i.Value); i.earlier != before || i.rank != inList || len(list) > most {
			return f, "the list of those that expire is broken"
		}
	}
	for n, i := range q.expiring.others {
		if heap = append(heap, i.Value); i.rank != n+1 || len(heap) > most {
			return f, "the heap is broken"
		}
	}
	for n, name := range keyNames {
		if i := q.keys[name]; i != nil {
			f.keys[n] = i.Value
		}
	}
	if e := q.expiring; (e.first == nil) != (e.last == nil) || e.last != nil && (e.last.later != nil || e.last.Value != list[len(list)-1]) {
		return f, "the list of those that expire ends elsewhere"
	}
	for i, item := range q.all {
		if f.queued[i] = item.queued; !item.queued && (item.prev != nil || item.next != nil || item.earlier != nil || item.later != nil || item.rank != 0) {
			return f, "an item that is out has neighbours"
		}
	}
	f.items, f.list, f.heap = rowOf(items), rowOf(list), rowOf(heap)
	return f, ""
}
