package queue

import "slices"

// This file has what the outbox of a walk does, and the promises that it checks.

// drop is the function Dropped of the Queue: it gets each item that the Queue drops.
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

// dropNow takes a queued item out of the Queue, and drops it.
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
