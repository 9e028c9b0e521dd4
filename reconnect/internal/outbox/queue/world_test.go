package queue

import (
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect/internal/walk"
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
	alarm     moment // when the timer drops what has expired; never: it is not set
	closed    bool
	over      bool // after Close

	accepted row // those that have no fate, in that order
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
	queued              // has none
	begun               // is being written
	settled             // it has its fate
)

// spec is what does not change of a message.
type spec struct {
	size       int
	free       bool // of a Write
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
	(*Queue[int8]).Add, (*Queue[int8]).Next, (*Queue[int8]).PutBack, (*Queue[int8]).Remove, (*Queue[int8]).Expire,
	(*Queue[int8]).Earliest, (*world).sends,
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

// drop is what the Queue calls for what it drops.
func (x *walker) drop(item *Item[int8], why Reason) {
	w, i := x.w, item.Value
	late := w.lives[i] != never && w.lives[i] <= 0
	switch why {
	case Expired:
		x.must(late, "a message expires too early")
	case Replaced:
		newer := x.adding
		for k := range int8(most) {
			if k != i && w.fates[k] == queued && x.replaces(k, i) {
				newer = k
			}
		}
		x.must(newer != nobody && x.replaces(newer, i), "a message is replaced, and there is no other with its key")
	case Displaced:
		count, bytes := x.size()
		s := x.c.specs[max(x.adding, 0)]
		x.must(x.c.Full == DropOldest && x.adding != nobody, "a message is displaced against the policy")
		x.must(count >= x.c.Messages || bytes+s.size > x.c.Bytes, "a message is displaced, and there is room")
		x.must(!x.c.specs[i].free, "a message is displaced that takes no room")
		for _, k := range w.accepted.ids() {
			if k == i {
				break
			}
			x.must(w.fates[k] != queued || x.c.specs[k].free, "a message is displaced, and there is an older one")
		}
		for k, f := range w.fates {
			x.must(f != queued || w.lives[k] == never || w.lives[k] > 0, "a message is displaced, and another has expired")
		}
	}
	x.settle(i)
}

// dropNow drops what is queued.
func (x *walker) dropNow(item *Item[int8]) {
	x.r.remove(&x.q.Queue, item)
	x.settle(item.Value)
}

// settle gives a message its fate.
func (x *walker) settle(i int8) {
	w := x.w
	x.must(w.fates[i] == queued || w.fates[i] == begun, "a message has two fates")
	w.fates[i], w.lives[i], w.bound[i] = settled, 0, 0
	w.accepted = rowOf(slices.DeleteFunc(slices.Clone(w.accepted.ids()), func(k int8) bool { return k == i }))
}

func (x *walker) setAlarm() {
	if at := momentOf(x.r.first(&x.q.Queue)); at != never && (x.w.alarm == never || at < x.w.alarm) {
		x.w.alarm = max(at, 0)
	}
}

// attach lets messages be written by the next session.
func (x *walker) attach() {
	w := x.w
	if w.lane.session != 0 {
		w.old = w.lane
	}
	w.sessions++
	w.lane = lane{session: w.sessions, batch: empty}
	x.flush()
}

// flush starts the flusher of each lane that has work.
func (x *walker) flush() {
	for _, l := range [...]*lane{&x.w.lane, &x.w.old} {
		if l.session != 0 && !l.flushing && !l.lost && x.hasFor(l, x.r.sends) {
			l.flushing = true
		}
	}
}

// hasFor reports whether there is a message that a lane may send now.
func (x *walker) hasFor(l *lane, sends func(*world, *lane, int8) bool) bool {
	for item := range x.q.All() {
		if sends(x.w, l, x.w.bound[item.Value]) {
			return true
		}
	}
	return false
}

// laneSteps adds what happens to a lane and its flusher.
func (x *walker) laneSteps(name string, w world, of func(*world) *lane) {
	l := of(&w)
	writes := l.batch != empty
	switch {
	case l.session == 0:
		return
	case !l.lost:
		x.add(name+"lost", w, func(w *world) { of(w).lost = true })
	case !l.flushing && !w.closed:
		x.act(name+"detached", w, func(w *world) { x.detach(of(w)) })
	}
	switch {
	case l.flushing && !writes:
		for n := 1; n <= 2; n++ {
			x.act(name+"begins", w, func(w *world) { x.begin(of(w), n) })
		}
	case writes:
		batch := l.batch.ids()
		if !l.lost {
			x.act(name+"has written", w, func(w *world) { x.wrote(of(w), len(batch), false, false) })
		}
		for n := range len(batch) {
			x.add(name+"message is bad", w, func(w *world) { x.wrote(of(w), n, false, false) })
			x.act(name+"write fails in the middle of a message", w, func(w *world) { x.wrote(of(w), n, true, true) })
			x.act(name+"write fails before a message", w, func(w *world) { x.wrote(of(w), n, true, false) })
		}
	}
}

// begin takes the next messages out of the queue; if there are none, the flusher ends.
func (x *walker) begin(l *lane, limit int) {
	w, batch := x.w, []int8(nil)
	if !w.closed && !l.lost {
		for len(batch) < limit {
			item := x.r.next(&x.q.Queue, epoch, func(i *Item[int8]) bool { return x.r.sends(w, l, w.bound[i.Value]) })
			if item == nil {
				break
			}
			x.taken(l, item.Value)
			x.r.remove(&x.q.Queue, item)
			l.sending = l.sending || w.bound[item.Value] == 0
			w.fates[item.Value] = begun
			batch = append(batch, item.Value)
		}
	}
	if l.batch = rowOf(batch); len(batch) == 0 {
		x.ended(l)
	}
}

// taken checks that it is the turn of a message.
func (x *walker) taken(l *lane, i int8) {
	w := x.w
	x.must(w.fates[i] == queued, "a message is written that is not queued")
	x.must(w.bound[i] == 0 || w.bound[i] == l.session, "a message goes by the session of another")
	x.must(w.lives[i] == never || w.lives[i] > 0, "a message is written that has expired")
	for _, k := range w.accepted.ids() {
		if k == i {
			break
		}
		may := w.bound[k] == 0 && l == &w.lane || w.bound[k] == l.session
		x.must(w.fates[k] != queued || !may || w.lives[k] != never && w.lives[k] <= 0, "a message overtakes one that was accepted before")
		x.must(w.fates[k] != begun || w.bound[k] != 0 || w.bound[i] != 0 || slices.Contains(l.batch[:], k) || w.batchOf(k) == nil || w.batchOf(k) == l,
			"a message overtakes one that another session has begun")
	}
}

// batchOf returns the lane that writes a message, nil if none does.
func (w *world) batchOf(i int8) *lane {
	for _, l := range [...]*lane{&w.lane, &w.old} {
		if slices.Contains(l.batch[:], i) {
			return l
		}
	}
	return nil
}

// wrote decides what becomes of a batch, of which n were written. If not all were, the next is a bad message,
// or the link is dead.
func (x *walker) wrote(l *lane, n int, dead, half bool) {
	w := x.w
	batch := slices.Clone(l.batch.ids())
	l.batch, l.lost = empty, l.lost || dead
	for _, i := range batch[:n] {
		x.settle(i)
	}
	rest := batch[n:]
	if len(rest) > 0 && !dead {
		x.settle(rest[0])
		rest = rest[1:]
	}
	var back []int8
	for k, i := range rest {
		half := half && k == 0
		switch {
		case half && !x.c.specs[i].repeatable, dead && w.closed:
			x.settle(i)
		default:
			back = append(back, i)
		}
	}
	for _, i := range slices.Backward(back) {
		x.putBack(i)
	}
	x.setAlarm()
	l.sending = false
	switch {
	case dead:
		x.ended(l)
	case l == &w.old:
		x.flush()
	}
}

// putBack puts a message at the head again, unless there is a newer one in its place.
func (x *walker) putBack(i int8) {
	w := x.w
	newer := false
	for k, f := range w.fates {
		newer = newer || f == queued && x.replaces(int8(k), i)
	}
	x.r.putBack(&x.q.Queue, x.q.all[i])
	x.must((w.fates[i] == settled) == newer, "a message is put back beside a newer one with its key, or is not put back")
	if w.fates[i] != settled {
		w.fates[i] = queued
	}
}

// ended notes that a flusher has ended.
func (x *walker) ended(l *lane) {
	l.flushing = false
	if l != &x.w.lane && x.w.lane.session != 0 {
		x.flush()
	}
}

// detach decides what becomes of the messages that a session leaves behind.
func (x *walker) detach(l *lane) {
	w, session := x.w, l.session
	was := l == &w.old
	*l = lane{batch: empty}
	if was {
		x.flush()
	}
	for item := range x.q.All() {
		if w.bound[item.Value] == session {
			x.dropNow(item)
		}
	}
}

// check checks all that can be seen of the Queue.
func (x *walker) check() {
	w := x.w
	wrong := ""
	if w.m, wrong = freeze(x.q); wrong != "" {
		x.must(false, wrong)
		return
	}
	count, bytes := x.size()
	x.must(int(w.m.count) == count && int(w.m.bytes) == bytes, "the count of messages or bytes")
	first, expires := true, never
	for _, i := range w.m.items.ids() {
		x.must(w.fates[i] == queued, "a message is queued that has its fate, or is being written")
		if first && w.fates[i] == queued {
			first = false
			x.must(x.q.First().Value == i, "the first of the queue")
		}
		if w.lives[i] != never && (expires == never || w.lives[i] < expires) {
			expires = w.lives[i]
		}
	}
	for i, f := range w.fates {
		x.must((f == queued) == slices.Contains(w.m.items.ids(), int8(i)), "a message is lost")
		for k := range i {
			x.must(f != queued || w.fates[k] != queued || !x.replaces(int8(i), int8(k)), "two messages with one key")
		}
	}
	x.must(momentOf(x.q.Earliest()) == expires, "when the next message expires")
	x.must(expires == never || w.alarm != never && w.alarm <= max(expires, 0), "nobody drops what has expired")
	x.must(!w.over || w.m.items == empty && count == 0, "something is left after Close")
	for _, l := range [...]*lane{&w.lane, &w.old} {
		x.must(l.session == 0 || l.lost || l.flushing || !x.hasFor(l, (*world).sends), "nobody writes what a session may send")
	}
}
