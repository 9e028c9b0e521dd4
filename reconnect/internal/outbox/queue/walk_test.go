package queue

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/walk"
)

// This file walks every state that a Queue can reach with the outbox around it, breadth first. world_test.go
// says what the outbox does, and what can happen to it.

// configs are what is walked, the small ones first.
var configs = []struct {
	name string
	config
}{
	{"refuse a third", config{Limits{2, 9, Refuse}, [most]spec{{size: 1, key: "a"}, {size: 1, key: "a", life: 1}, {size: 2}}, 1}},
	{"refuse a byte", config{Limits{9, 3, Refuse}, [most]spec{{size: 2}, {size: 2, life: 1}, {size: 2, free: true}}, 1}},
	{"refuse what is too large", config{Limits{2, 3, DropOldest}, [most]spec{{size: 2}, {size: 4}, {size: 1}}, 1}},
	{"refuse where no key helps", config{Limits{2, 3, ReplaceKey}, [most]spec{{size: 1, key: "a", life: 1}, {size: 2, key: "a"}, {size: 2, key: "b"}}, 1}},
	{"expire in any order", config{Limits{9, 9, Refuse}, [most]spec{{size: 1, life: 1}, {size: 1, life: 2}, {size: 1, life: 3}}, 1}},
	{"drop the oldest", config{Limits{2, 9, DropOldest}, [most]spec{{size: 2}, {size: 1, life: 2}, {size: 3, life: 1}}, 1}},
	{"replace by key", config{Limits{2, 3, ReplaceKey}, [most]spec{{size: 1, key: "a", life: 1, repeatable: true}, {size: 2, key: "a"}, {size: 1, key: "b"}}, 2}},
	{"drop those that take room", config{Limits{1, 3, DropOldest}, [most]spec{{size: 2}, {size: 1, free: true, life: 2}, {size: 3, life: 1, repeatable: true}}, 2}},
	{"for one session", config{Limits{3, 9, Refuse}, [most]spec{{size: 1, repeatable: true}, {size: 1, own: true, life: 1}, {size: 1, free: true}}, 3}},
	{"expire out of order", config{Limits{2, 3, Refuse}, [most]spec{{size: 1, life: 2}, {size: 2, life: 1, repeatable: true}, {size: 1}}, 2}},
}

func walkAll(c config, r rules) *walk.Walk[world] {
	x := &walker{c: &c, r: r}
	return walk.All(walk.Space[world]{
		First: x.first(), Steps: x.steps, Broken: func(w world) string { return w.wrong },
		Ways: []walk.Way[world]{
			{Wrong: "Close does not end", Goal: func(w world) bool { return !w.closed || w.over }},
			{Wrong: "a message has no fate, although a session is there", Goal: func(w world) bool {
				for _, f := range w.fates {
					if f == queued || f == begun {
						return w.lane.session == 0 || w.lane.lost
					}
				}
				return true
			}},
			{Wrong: "a message has no fate after all", Goal: func(w world) bool { return w.over }, By: func(s walk.Step[world]) bool {
				return s.Free || strings.HasSuffix(s.Event, "close")
			}},
		},
	})
}

// With REDIAL_LONG=1 there is a session more, and what expires lives longer.
func TestEveryReachableStateOfTheSendQueueKeepsItsPromises(t *testing.T) {
	walk.SkipWithRace(t)
	over, two, heap, list := false, false, false, false
	for _, c := range configs {
		if os.Getenv("REDIAL_LONG") != "" {
			c.sessions++
			for i := range c.specs {
				if c.specs[i].life != 0 {
					c.specs[i].life++
				}
			}
		}
		w := walkAll(c.config, trueRules)
		assert.Empty(t, w.Wrong, c.name)
		t.Logf("%s: %d states, %d edges", c.name, len(w.States), w.Edges)
		for _, s := range w.States {
			over = over || s.over && s.fates == [most]fate{settled, settled, settled}
			two = two || s.lane.batch != empty && s.old.batch != empty
			heap, list = heap || len(s.m.heap.ids()) > 1, list || len(s.m.list.ids()) > 1
		}
	}
	// The walks come to the end, to two flushers at a time, and to messages that expire in order and out of it.
	assert.True(t, over && two && heap && list)
}

// Each mistake is planted in the Queue, or in what the outbox asks about a lane, and the walk finds it.
func TestTheWalkOfTheSendQueueFindsEachMistake(t *testing.T) {
	walk.SkipWithRace(t)
	require.GreaterOrEqual(t, len(mistakes), 20)
	for _, name := range slices.Sorted(maps.Keys(mistakes)) {
		t.Run(name, func(t *testing.T) {
			rules := trueRules
			mistakes[name](&rules)
			found := ""
			for _, c := range configs {
				if found = walkAll(c.config, rules).Wrong; found != "" {
					break
				}
			}
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}

type (
	testItem  = Item[int8]
	testQueue = Queue[int8]
)

// mistakes change one rule.
var mistakes = map[string]func(*rules){
	"the last accepted is the first": func(r *rules) {
		r.add = func(q *testQueue, item *testItem, now time.Time) error {
			err := q.Add(item, now)
			if err == nil {
				q.Remove(item)
				q.PutBack(item)
			}
			return err
		}
	},
	"what replaces another takes its turn": func(r *rules) {
		r.add = func(q *testQueue, item *testItem, now time.Time) error {
			replaces := item.Key != "" && q.keys[item.Key] != nil
			err := q.Add(item, now)
			if err == nil && replaces {
				q.Remove(item)
				q.PutBack(item)
			}
			return err
		}
	},
	"what replaces another leaves it": func(r *rules) {
		r.add = func(q *testQueue, item *testItem, now time.Time) error {
			delete(q.keys, item.Key)
			return q.Add(item, now)
		}
	},
	"what has expired takes room": func(r *rules) {
		r.add = func(q *testQueue, item *testItem, now time.Time) error {
			if !item.Free && q.Full == Refuse && !q.fits(item, nil) {
				return &FullError{}
			}
			return q.Add(item, now)
		}
	},
	"another is displaced before what has expired": func(r *rules) {
		r.add = func(q *testQueue, item *testItem, now time.Time) error { return q.Add(item, now.Add(-unit)) }
	},
	"the newest is displaced": func(r *rules) {
		r.add = func(q *testQueue, item *testItem, now time.Time) error {
			if !item.Free && item.Size <= q.Bytes && q.Full == DropOldest && !q.fits(item, nil) {
				if q.Expire(now); !q.fits(item, nil) && !q.last.Free {
					q.drop(q.last, Displaced)
				}
			}
			return q.Add(item, now)
		}
	},
	"a message of Write is displaced": func(r *rules) {
		r.add = func(q *testQueue, item *testItem, now time.Time) error {
			if !item.Free && item.Size <= q.Bytes && q.Full == DropOldest && !q.fits(item, nil) {
				if q.Expire(now); !q.fits(item, nil) {
					q.drop(q.first, Displaced)
				}
			}
			return q.Add(item, now)
		}
	},
	"one is displaced too many": func(r *rules) {
		r.add = func(q *testQueue, item *testItem, now time.Time) error {
			if !item.Free && q.Full == DropOldest && q.count > 0 {
				if q.Expire(now); q.count > 0 {
					q.drop(q.oldest(), Displaced)
				}
			}
			return q.Add(item, now)
		}
	},
	"one more than there is room for": func(r *rules) {
		r.add = func(q *testQueue, item *testItem, now time.Time) error {
			q.Messages++
			defer func() { q.Messages-- }()
			return q.Add(item, now)
		}
	},
	"a byte more than there is room for": func(r *rules) {
		r.add = func(q *testQueue, item *testItem, now time.Time) error {
			q.Bytes++
			defer func() { q.Bytes-- }()
			return q.Add(item, now)
		}
	},
	"a message of Write takes room": func(r *rules) {
		r.add = func(q *testQueue, item *testItem, now time.Time) error {
			err := q.Add(item, now)
			if item.Free {
				q.count++
			}
			return err
		}
	},
	"a message may be written in the instant at which it expires": func(r *rules) {
		r.next = func(q *testQueue, now time.Time, may func(*testItem) bool) *testItem {
			return q.Next(now.Add(-1), nil, may)
		}
	},
	"the first that may go is dropped": func(r *rules) {
		r.next = func(q *testQueue, now time.Time, may func(*testItem) bool) *testItem {
			if item := q.Next(now, nil, may); item != nil {
				q.Remove(item)
			}
			return q.Next(now, nil, may)
		}
	},
	"the last that may go is the first": func(r *rules) {
		r.next = func(q *testQueue, now time.Time, may func(*testItem) bool) (last *testItem) {
			q.Next(now, nil, func(item *testItem) bool {
				if may(item) {
					last = item
				}
				return false
			})
			return last
		}
	},
	"all in front of the first that may go are dropped": func(r *rules) {
		r.next = func(q *testQueue, now time.Time, may func(*testItem) bool) *testItem {
			item := q.Next(now, nil, may)
			for item != nil && q.first != item {
				q.drop(q.first, Expired)
			}
			return item
		}
	},
	"what is put back is the last": func(r *rules) {
		r.putBack = func(q *testQueue, item *testItem) {
			q.PutBack(item)
			if item.queued {
				limits := q.Limits
				q.Remove(item)
				q.Limits = Limits{most, 100, limits.Full}
				_ = q.Add(item, epoch.Add(-time.Hour))
				q.Limits = limits
			}
		}
	},
	"what is put back stays beside a newer one": func(r *rules) {
		r.putBack = func(q *testQueue, item *testItem) {
			delete(q.keys, item.Key)
			q.PutBack(item)
		}
	},
	"what is put back needs room": func(r *rules) {
		r.putBack = func(q *testQueue, item *testItem) {
			if q.fits(item, nil) || item.Free {
				q.PutBack(item)
			} else {
				q.Dropped(item, Displaced)
			}
		}
	},
	"what is put back counts twice": func(r *rules) {
		r.putBack = func(q *testQueue, item *testItem) {
			if q.PutBack(item); item.queued {
				q.bytes += item.Size
			}
		}
	},
	"what leaves keeps its key": func(r *rules) {
		r.remove = func(q *testQueue, item *testItem) {
			if q.Remove(item); item.Key != "" && q.Full == ReplaceKey {
				q.keys[item.Key] = item
			}
		}
	},
	"what leaves still expires": func(r *rules) {
		r.remove = func(q *testQueue, item *testItem) {
			if q.Remove(item); !item.Expires.IsZero() {
				q.expiring.add(item)
			}
		}
	},
	"what leaves still takes room": func(r *rules) {
		r.remove = func(q *testQueue, item *testItem) {
			if q.Remove(item); !item.Free {
				q.count++
			}
		}
	},
	"who leaves the middle takes the rest along": func(r *rules) {
		r.remove = func(q *testQueue, item *testItem) {
			before := item.prev
			if q.Remove(item); before != nil {
				before.next, q.last = nil, before
			}
		}
	},
	"what expires goes too early": func(r *rules) {
		r.expire = func(q *testQueue, now time.Time) { q.Expire(now.Add(unit)) }
	},
	"one expires at a time": func(r *rules) {
		r.expire = func(q *testQueue, now time.Time) {
			if item := q.expiring.next(); item != nil && item.expired(now) {
				q.drop(item, Expired)
			}
			if item := q.expiring.next(); item != nil {
				item.Expires = now.Add(unit)
			}
		}
	},
	"what expires out of order is forgotten": func(r *rules) {
		r.first = func(q *testQueue) time.Time {
			if q.expiring.first == nil {
				return time.Time{}
			}
			return q.expiring.first.Expires
		}
	},
	"the next session does not wait for the old one": func(r *rules) {
		r.sends = func(w *world, l *lane, bound int8) bool {
			if l == &w.lane {
				return bound == 0 || bound == l.session
			}
			return w.sends(l, bound)
		}
	},
	"the old session goes on with what is for any": func(r *rules) {
		r.sends = func(w *world, l *lane, bound int8) bool { return bound == 0 || w.sends(l, bound) }
	},
	"a message goes by any session": func(r *rules) {
		r.sends = func(w *world, l *lane, bound int8) bool { return l == &w.lane && !w.old.sending || w.sends(l, bound) }
	},
	"nobody writes what is for the old session": func(r *rules) {
		r.sends = func(w *world, l *lane, bound int8) bool { return l == &w.lane && w.sends(l, bound) }
	},
}
