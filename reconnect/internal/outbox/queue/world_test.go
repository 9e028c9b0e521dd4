package queue

import (
	"slices"
	"time"

	"github.com/redial-go/redial/internal/walk"
)

// world is what the walk visits: a Queue, the outbox around it with the links of two sessions, and the fates
// of the messages. The outbox does what the one of package outbox does, in the same order; a step is all
// that is done under its lock. The link of a session is lost at any time, also while messages are being written.
type world struct {
	m     frozen
	lives [most]moment // when each message expires
	fates [most]fate
	bound [most]int8 // the session that a message is for; 0: any

	lane, old lane   // old is that of the session before, while one replaces another
	sessions  int8   // so far
	alarm     moment // when the timer drops the expired messages; never: it is not set
	closed    bool
	over      bool // after Close

	accepted row // the messages that were accepted and have no fate yet, in the order of acceptance
	wrong    string
}

// lane is a link by which messages are written.
type lane struct {
	session  int8 // 0: there is no such lane
	lost     bool
	flushing bool
	sending  bool // it writes messages that any session could send
	batch    row  // what it writes now
}

// fate is what has become of a message.
type fate uint8

const (
	fresh   fate = iota // not accepted yet
	queued              // waits in the Queue
	begun               // is being written
	settled             // it has its fate
)

// spec has the properties of a message that do not change.
type spec struct {
	size       int
	free       bool // the message comes from Write
	key        string
	life       moment // how long after it is accepted it expires; 0: never
	own        bool   // it is for the session by which messages go when it is accepted
	repeatable bool
}

// config is one kind of outbox, with the messages that it gets.
type config struct {
	Limits
	specs    [most]spec
	sessions int8 // how many there are at most
}

// rules are the methods of Queue, and what the outbox asks about a lane; a mistake replaces one.
type rules struct {
	add     func(*Queue[int8], *Item[int8], time.Time) error
	next    func(*Queue[int8], time.Time, func(*Item[int8]) bool) *Item[int8]
	putBack func(*Queue[int8], *Item[int8])
	remove  func(*Queue[int8], *Item[int8])
	expire  func(*Queue[int8], time.Time)
	first   func(*Queue[int8]) time.Time
	sends   func(w *world, l *lane, bound int8) bool
}

var trueRules = rules{
	(*Queue[int8]).Add, next, (*Queue[int8]).PutBack, (*Queue[int8]).Remove, (*Queue[int8]).Expire,
	(*Queue[int8]).Earliest, (*world).sends,
}

func next(q *Queue[int8], now time.Time, may func(*Item[int8]) bool) *Item[int8] {
	return q.Next(now, nil, may)
}

// sends reports whether a lane may send a message for such a session now.
func (w *world) sends(l *lane, bound int8) bool {
	if l != &w.lane {
		return bound == l.session
	}
	return (bound == 0 || bound == l.session) && !w.old.sending
}

// walker makes the steps of one config.
type walker struct {
	c *config
	r rules

	// Of the present step.
	w      *world
	q      *thawed
	adding int8 // which message is being added; nobody: none
	list   []walk.Step[world]
}

func (x *walker) first() world {
	w := world{
		m:     frozen{items: empty, list: empty, heap: empty, keys: [2]int8{nobody, nobody}},
		alarm: never, accepted: empty,
	}
	w.lane.batch, w.old.batch = empty, empty
	return w
}

func (x *walker) add(event string, from world, happen func(w *world)) {
	w := from
	x.w, x.q, x.adding = &w, w.m.thaw(x.c, w.lives), nobody
	x.q.Dropped = x.drop
	happen(&w)
	x.check()
	x.list = append(x.list, walk.Step[world]{Event: event, State: w})
}

func (x *walker) act(event string, from world, happen func(w *world)) {
	x.add(event, from, happen)
	x.list[len(x.list)-1].Free = true
}

func (x *walker) must(holds bool, wrong string) {
	if !holds && x.w.wrong == "" {
		x.w.wrong = wrong
	}
}

// steps returns all that can happen in w.
func (x *walker) steps(w world) []walk.Step[world] {
	x.list = nil
	if w.over {
		return nil
	}
	if w.alarm == never || w.alarm > -1 {
		later := w
		later.alarm = w.alarm.later()
		for i := range later.lives {
			if w.fates[i] == queued || w.fates[i] == begun {
				later.lives[i] = w.lives[i].later()
			}
		}
		x.list = append(x.list, walk.Step[world]{Event: "tick", Free: true, State: later})
	}
	if w.alarm != never && w.alarm <= 0 {
		x.act("timer", w, func(w *world) {
			w.alarm = never
			x.r.expire(&x.q.Queue, epoch)
			x.setAlarm()
		})
	}
	for i := range int8(most) {
		x.message(w, i)
	}
	if !w.closed {
		if w.old.session == 0 && w.sessions < x.c.sessions && !w.lane.lost {
			x.add("a session is ready", w, func(w *world) { x.attach() })
		}
		x.add("close", w, func(w *world) {
			w.closed = true
			w.lane.lost, w.old.lost = w.lane.session != 0, w.old.session != 0
		})
	}
	x.laneSteps("", w, func(w *world) *lane { return &w.lane })
	x.laneSteps("old: ", w, func(w *world) *lane { return &w.old })
	if w.closed && !w.lane.flushing && !w.old.flushing {
		x.act("closed", w, func(w *world) {
			for item := range x.q.All() {
				x.dropNow(item)
			}
			w.over = true
		})
	}
	return x.list
}

// message adds what the user does with a message.
func (x *walker) message(w world, i int8) {
	name := string(rune('1'+i)) + ": "
	s := x.c.specs[i]
	switch {
	case w.fates[i] == fresh && !w.closed && (!s.own || w.lane.session != 0 && !w.lane.lost):
		x.add(name+"sent", w, func(w *world) { x.accept(i) })
	case w.fates[i] == queued && s.free:
		x.add(name+"withdrawn", w, func(w *world) { x.dropNow(x.q.all[i]) })
	}
}

// accept queues a message, if there is room.
func (x *walker) accept(i int8) {
	w, s, item := x.w, x.c.specs[i], x.q.all[i]
	if w.lives[i] = never; s.life != 0 {
		w.lives[i] = s.life
	}
	item.Expires = w.lives[i].time()
	x.adding = i
	err := x.r.add(&x.q.Queue, item, epoch)
	x.adding = nobody
	if err != nil {
		x.must(!s.free && !x.fits(i), "a message is refused, and there is room")
		w.lives[i] = 0
		return
	}
	if w.fates[i], w.bound[i] = queued, 0; s.own {
		w.bound[i] = w.lane.session
	}
	count, bytes := x.size()
	x.must(s.free || count <= x.c.Messages && bytes <= x.c.Bytes, "more messages are accepted than there is room for")
	w.accepted = rowOf(append(slices.Clone(w.accepted.ids()), i))
	x.setAlarm()
	x.flush()
}

// fits reports whether there is room for a message, without what has expired and what it replaces.
func (x *walker) fits(i int8) bool {
	count, bytes := x.size()
	for k, f := range x.w.fates {
		s := x.c.specs[k]
		if f == queued && !s.free && (x.w.lives[k] != never && x.w.lives[k] <= 0 || x.replaces(i, int8(k))) {
			count, bytes = count-1, bytes-s.size
		}
	}
	s := x.c.specs[i]
	return count < x.c.Messages && bytes+s.size <= x.c.Bytes || x.c.Full == DropOldest && s.size <= x.c.Bytes
}

// replaces reports whether a message takes the place of another.
func (x *walker) replaces(i, other int8) bool {
	return x.c.Full == ReplaceKey && x.c.specs[i].key != "" && x.c.specs[i].key == x.c.specs[other].key
}

// size returns what takes room.
func (x *walker) size() (count, bytes int) {
	for i, f := range x.w.fates {
		if s := x.c.specs[i]; f == queued && !s.free {
			count, bytes = count+1, bytes+s.size
		}
	}
	return count, bytes
}
