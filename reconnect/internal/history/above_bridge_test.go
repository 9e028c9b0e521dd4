package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

// The invariants of a bridge.Bridge.
const (
	ItemOnce         Invariant = "bridge: an item comes at most once"
	ItemInPlace      Invariant = "bridge: no number is left out, except where a snapshot or an EventLost says so"
	ItemIsTrue       Invariant = "bridge: an item is one that the server has made"
	StaleAfterSeam   Invariant = "bridge: after a seam each stream is stale before its next item"
	StaleThenHealed  Invariant = "bridge: a stream becomes stale, and then healed, in turn"
	HealedIsComplete Invariant = "bridge: a healed stream has all that was made before the session was lost"
	LossHasReason    Invariant = "bridge: numbers are lost only if there is no snapshot and the past is gone, or if a fetch has failed for good"
	HoldBounded      Invariant = "bridge: no more messages are held than Options.Messages"
	FetchesBounded   Invariant = "bridge: no more fetches run than Options.Fetches, and each ends within Options.Timeout"
	FetchWaits       Invariant = "bridge: no fetch of a stream begins before the time that the server asked for"
	RetryWaits       Invariant = "bridge: the wait after a failed fetch is that of the server, and that of Options.Policy at most besides"
	FetchesEnd       Invariant = "bridge: no fetch runs when the loop over Events has ended"
	OthersPass       Invariant = "bridge: a seam, and a message that is no item, is an EventOther, in its place"
	OneRange         Invariant = "bridge: a second loop over Events beside the first gets an error"
	StreamsComplete  Invariant = "bridge: without faults each stream is healed and complete"
)

// streams is a bridge.Bridge, with a server that numbers the items of each key. Item n of a key is made shortly
// after event n of the feed.
type streams struct {
	nothing
	w      *world
	bridge *bridge.Bridge[int, string]
	o      bridge.Options[int, string]
	streamFaults

	// world.mu guards what follows.
	keys    []*stream
	epochs  []epoch
	others  []other                   // what the Bridge has read, and the reader has not got
	orders  []func()                  // for the goroutine that reads
	stop    context.CancelFunc        // ends the present Read
	runs    int                       // fetches under way
	watched map[uint64]time.Duration  // when the server began to send the items by a session
	waits   map[fetchOf]time.Duration // when the server wants the next fetch
	refused map[fetchOf]bool          // such a fetch has failed for good
	failed  [streamKeys]int           // at least so many fetches have failed since the stream was healed
}

// fetchOf is one of the ways to fetch a stream.
type fetchOf struct {
	how string
	key int
}

// streamFaults are what the server of a Bridge does not do well.
type streamFaults struct {
	page    int           // the most that it gives at once
	lag     time.Duration // it stores later than it sends
	forgets int           // it keeps so many items of a stream; 0: all
	skips   bool          // it does not send each item
	turns   bool          // it counts anew now and then
}

// stream is how far the reader is in a stream.
type stream struct {
	begun, stale bool
	turned       bool // a new epoch has begun, whose name is not known
	at           bridge.Cursor
	due          bool          // EventStale
	least        time.Duration // EventHealed comes when what was made until then is there; 0: not known
}

// epoch is a count of the server.
type epoch struct {
	from time.Duration
	base [streamKeys]int // how many items of each key were made before
}

// other is a message that is no item, or a seam.
type other struct {
	data string
	seam *reconnect.Seam
}

const streamKeys = 3

func newStreams(w *world) *streams {
	r := w.plan.stream(actorAboveOptions)
	s := &streams{w: w, epochs: make([]epoch, 1), watched: make(map[uint64]time.Duration), waits: make(map[fetchOf]time.Duration), refused: make(map[fetchOf]bool)}
	s.streamFaults = streamFaults{page: 1 + r.IntN(20), skips: r.IntN(2) == 0, turns: r.IntN(3) == 0}
	if r.IntN(3) == 0 {
		s.lag = upTo(r, 2*time.Second)
	}
	if r.IntN(3) == 0 {
		s.forgets = 5 + r.IntN(20)
	}
	s.o = bridge.Options[int, string]{
		Parse: parseItem, Messages: 1 + r.IntN(30), Fetches: 1 + r.IntN(3), Timeout: 2*time.Second + upTo(r, 5*time.Second),
		AwaitSubscribed: r.IntN(4) == 0, Policy: &backoff.Exponential{Base: 300 * time.Millisecond, Cap: 5 * time.Second, Jitter: backoff.JitterNone},
	}
	if w.set.FetchesUnset {
		s.o.Fetches = 0
	}
	switch r.IntN(6) {
	case 0, 1:
		s.o.Past = s.past
	case 2, 3:
		s.o.Past, s.o.Snapshot = s.past, s.snapshot
	case 4:
		s.o.Snapshot = s.snapshot
	case 5:
		s.o.Ask = s.ask
	}
	s.o.OnRetry = s.repeated
	b, err := bridge.New(&s.o)
	if err != nil {
		panic(err)
	}
	s.bridge = b
	follow := r.IntN(2) == 0
	for k := range streamKeys {
		s.keys = append(s.keys, new(stream))
		if follow {
			s.keys[k].begun = !s.snapshots()
			if err := b.Follow(k, bridge.Cursor{}); err != nil {
				panic(err)
			}
		}
	}
	return s
}

// open subscribes to all keys. What comes before the answer is delivered.
func (s *streams) open(o *reconnect.Opening) error {
	s.w.mu.Lock()
	s.w.of(o.Session).delivering = true
	s.w.mu.Unlock()
	if err := o.Write(conn.TextMessage(framed("watch"))); err != nil || s.o.AwaitSubscribed {
		return err
	}
	for {
		m, err := o.Read()
		if err != nil {
			return err
		}
		if words, ok := unframed(string(m.Data)); ok && words[0] == "watching" {
			return nil
		}
		if err := o.Deliver(m); err != nil {
			return err
		}
	}
}

// The user.

func (s *streams) step(r *rand.Rand, e Event) {
	w, k := s.w, r.IntN(streamKeys)
	switch n := r.IntN(8); {
	case n < 3:
		s.order("refetch", k, func() { s.refetch(k, 0) })
	case n < 6:
		s.order("forget", k, func() { s.forget(k, n == 5) })
	case s.turns && !w.calmed.Load(): // the server begins anew, and counts anew
		w.mu.Lock()
		w.remark("the server counts anew")
		next := epoch{from: w.now()}
		for k := range streamKeys {
			next.base[k] = s.made(k, w.now())
		}
		s.epochs = append(s.epochs, next)
		w.mu.Unlock()
		if !w.set.TurnsOpenly {
			w.oneByOne("turns", (*conntest.Pipe).Reset)
		}
	}
}

// order has the goroutine that reads do something before it reads on: the reader has all events of before then.
func (s *streams) order(what string, k int, do func()) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.remark("%s %d", what, k)
	if s.orders = append(s.orders, do); s.stop != nil {
		s.stop()
	}
}

// refetch is Bridge.Refetch.
func (s *streams) refetch(k int, session uint64) {
	s.bridge.Refetch(k, session)
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	p := s.keys[k]
	p.begun = p.begun || !s.snapshots()
	p.due = p.begun && !p.stale
}

// forget is Bridge.Forget, and then Follow from where the reader is.
func (s *streams) forget(k int, follow bool) {
	s.bridge.Forget(k)
	s.w.mu.Lock()
	p := s.keys[k]
	follow = follow && p.at.Offset > 0
	s.keys[k] = &stream{begun: follow, due: follow}
	for _, how := range []string{"past", "snapshot", "ask"} {
		delete(s.waits, fetchOf{how, k})
	}
	if follow {
		s.keys[k].at = p.at
	}
	s.w.mu.Unlock()
	if follow {
		s.w.claim(StaleThenHealed, s.bridge.Follow(k, p.at) == nil, "Follow after Forget")
	}
}

func (s *streams) snapshots() bool { return s.o.Snapshot != nil || s.o.Ask != nil }

// The reader.

// read reads until the Conn has ended.
func (s *streams) read(r *rand.Rand) {
	w := s.w
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 1+upTo(r, 20*time.Second))
		var last error
		for e, err := range s.bridge.Events(ctx, s) {
			if w.rest(); err != nil {
				last = err
				break
			}
			s.event(e)
			n := r.IntN(60)
			if n == 0 {
				for _, err := range s.bridge.Events(ctx, s) {
					w.claim(OneRange, err != nil, "a second loop has an event")
					break
				}
			}
			if n == 1 {
				break
			}
		}
		ended := ctx.Err() != nil
		cancel()
		w.mu.Lock()
		w.check(FetchesEnd, s.runs == 0, "%d fetches run", s.runs)
		left := len(s.others)
		clear(s.waits) // the loop may have ended before it got a failure
		w.mu.Unlock()
		if last != nil && !errors.Is(last, context.DeadlineExceeded) {
			w.claim(OthersPass, left == 0, "%d did not come", left)
			w.readEnded(last, w.now(), w.now())
			return
		}
		w.claim(ContextOfItsOwn, last == nil || ended, "Events has the error of a context that goes on")
	}
}

// Read is that of a bridge.Source. It hands to the checks of the Conn what the Bridge gets.
func (s *streams) Read(ctx context.Context, buf []byte) (reconnect.Message, error) {
	w := s.w
	for {
		own, cancel := context.WithCancel(ctx)
		w.mu.Lock()
		s.stop = cancel
		var do func()
		if len(s.orders) > 0 { // one, because the reader gets its events before the next
			do, s.orders = s.orders[0], s.orders[1:]
			cancel()
		}
		w.mu.Unlock()
		if do != nil {
			do()
		}
		m, err := w.conn.Read(own, buf)
		stopped := own.Err() != nil && ctx.Err() == nil && errors.Is(err, context.Canceled)
		cancel()
		if stopped {
			continue
		}
		if seam, lost := errors.AsType[*reconnect.Seam](err); lost {
			w.seam(seam)
		} else if err == nil {
			w.message(m)
			if _, ok := parseItem(m); !ok {
				w.mu.Lock()
				s.others = append(s.others, other{data: string(m.Data)})
				w.mu.Unlock()
			}
		}
		return m, err
	}
}

func (s *streams) Await(ctx context.Context, state reconnect.State) error {
	return s.w.conn.Await(ctx, state)
}

func (s *streams) State() reconnect.State { return s.w.conn.State() }

// parseItem is Options.Parse.
func parseItem(m reconnect.Message) (it bridge.Item[int, string], ok bool) {
	words, ok := unframed(string(m.Data))
	if !ok || words[0] != "item" && words[0] != "snapshot" {
		return it, false
	}
	return bridge.Item[int, string]{
		Key: atoi(words[1]), Epoch: words[2], First: uint64(atoi(words[3])), Last: uint64(atoi(words[4])), Snapshot: words[0] == "snapshot", Value: words[5],
	}, true
}

func (s *streams) seam(seam *reconnect.Seam) {
	w := s.w
	s.others = append(s.others, other{seam: seam})
	if mark := seam.Refetch && seam.Lost == 0 && seam.Dropped == 0; mark || seam.Resumed || seam.Overlapped {
		return
	}
	least := w.now()
	for n, at := range s.watched {
		goesOn := n == seam.Session && seam.Lost == 0 || w.mixes() && !w.of(n).seam
		if n > seam.Session || goesOn { // what comes live by this session was made later
			least = min(least, at)
		}
	}
	for _, p := range s.keys {
		p.due = p.begun && !p.stale
		p.least = max(0, least-s.lag)
	}
}

// event checks an event.
func (s *streams) event(e bridge.Event[int, string]) {
	stats := s.bridge.Stats()
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(HoldBounded, stats.Held <= s.o.Messages, "%d of %d", stats.Held, s.o.Messages)
	if e.Kind == bridge.EventOther {
		s.other(e)
		return
	}
	p := s.keys[e.Key]
	w.readLog("stream %d: %v, %s %d to %d", e.Key, e.Kind, e.Epoch, e.First, e.Last)
	if p.due {
		w.check(StaleAfterSeam, e.Kind == bridge.EventStale, "stream %d is not stale at %+v", e.Key, e)
		p.due = false
	}
	switch e.Kind {
	case bridge.EventLive, bridge.EventPast:
		s.isTrue(e)
		first := e.First
		if first == 0 {
			first = e.Last
		}
		next := p.at.Offset + 1
		if same := p.at.Epoch == e.Epoch || p.turned || p.at == (bridge.Cursor{}); p.begun {
			w.check(ItemInPlace, same && first <= next, "stream %d: %d is due: %+v", e.Key, next, e)
			w.check(ItemOnce, same && next <= e.Last, "stream %d: %d is due: %+v", e.Key, next, e)
		} else {
			w.check(ItemInPlace, !s.snapshots() || s.noSnapshot(e.Key), "stream %d begins with %+v", e.Key, e)
		}
	case bridge.EventSnapshot:
		s.isTrue(e)
	case bridge.EventStale:
		w.check(StaleThenHealed, !p.stale, "stream %d is stale already: %+v", e.Key, e)
		p.stale = true
	case bridge.EventLost:
		turned := errors.Is(e.Err, bridge.ErrNewEpoch)
		now, _ := s.place(e.Key, w.now())
		gone := e.Epoch != "" && e.Epoch < now // a server that counts anew has nothing more of the old count
		refused := errors.Is(e.Err, errNever) && (!s.snapshots() || s.noSnapshot(e.Key)) && (turned || gone || s.noPast(e.Key))
		ended := w.mayEnd != "" && s.o.Ask != nil && backoff.Classify(e.Err).Class == backoff.ClassStop // the Conn did not write what Ask asks
		w.check(LossHasReason, refused || ended || !s.snapshots() && (turned && len(s.epochs) > 1 && e.Epoch != "" || gone || s.forgets > 0 && errors.Is(e.Err, bridge.ErrTooOld)), "%+v", e)
		w.check(ItemInPlace, !p.begun || e.First == p.at.Offset+1, "stream %d: %d is due: %+v", e.Key, p.at.Offset+1, e)
		if turned {
			p.begun, p.at, p.turned = true, bridge.Cursor{}, true
			return
		}
		if e.First == 0 { // the stream had no numbers
			p.least = 0
		}
	case bridge.EventHealed:
		w.check(StaleThenHealed, p.stale, "stream %d is healed, and was not stale", e.Key)
		w.check(HealedIsComplete, !p.begun || p.turned || p.at == bridge.Cursor{Epoch: e.Epoch, Offset: e.Last}, "stream %d is at %v: %+v", e.Key, p.at, e)
		if p.least > 0 && s.epochs[len(s.epochs)-1].from < p.least { // a page of another count says that nothing is missing
			epoch, number := s.place(e.Key, p.least)
			w.check(HealedIsComplete, number == 0 || e.Epoch > epoch || e.Epoch == epoch && int(e.Last) >= number, "stream %d had %s %d at %v: %+v", e.Key, epoch, number, p.least, e)
		}
		p.stale, p.least, s.failed[e.Key] = false, 0, 0
		for _, how := range []string{"past", "snapshot", "ask"} { // the next fetch has a wait and a refusal of its own
			delete(s.waits, fetchOf{how, e.Key})
			delete(s.refused, fetchOf{how, e.Key})
		}
	}
	if c, ok := e.Cursor(); ok {
		p.begun, p.turned, p.at = true, false, c
	}
}

// noSnapshot reports whether a snapshot of a stream could not be had since it was healed last. The caller holds world.mu.
func (s *streams) noSnapshot(k int) bool {
	return s.refused[fetchOf{"snapshot", k}] || s.refused[fetchOf{"ask", k}]
}

// noPast reports whether the past of a stream could not be had since it was healed last. The caller holds world.mu.
func (s *streams) noPast(k int) bool {
	return s.o.Past == nil || s.forgets > 0 || !s.keys[k].begun || s.refused[fetchOf{"past", k}]
}

// isTrue checks the content of an item. The caller holds world.mu.
func (s *streams) isTrue(e bridge.Event[int, string]) {
	i := s.epoch(e.Epoch).base[e.Key] + int(e.Last)
	s.w.check(ItemIsTrue, e.Value == value(e.Key, i) && i <= s.made(e.Key, s.w.now()), "%+v", e)
}

// other checks an EventOther. The caller holds world.mu.
func (s *streams) other(e bridge.Event[int, string]) {
	if len(s.others) == 0 {
		s.w.check(OthersPass, false, "%+v", e)
		return
	}
	next := s.others[0]
	s.others = s.others[1:]
	seam, _ := e.Err.(*reconnect.Seam)
	_, placed := e.Cursor()
	s.w.check(OthersPass, seam == next.seam && string(e.Message.Data) == next.data && !placed, "%+v comes, and %+v is due", e, next)
	if words, ok := unframed(next.data); ok && words[0] == "watching" {
		for k := range streamKeys {
			s.orders = append(s.orders, func() { s.refetch(k, e.Session) })
		}
	}
}

// repeated is Options.OnRetry.
func (s *streams) repeated(k int, err error, wait time.Duration) {
	w, verdict := s.w, backoff.Classify(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	s.failed[k]++
	least := verdict.RetryAfter
	most := least + min(5*time.Second, 300*time.Millisecond<<min(s.failed[k]-1, 10)) // of Options.Policy
	if verdict.Class == backoff.ClassSlow && (!verdict.Lenient || s.failed[k] > 1) {
		// As by a Conn whose dials get a 403: the longest SlowWait.
		slow := min(120, 10*math.Pow(1.2, float64(s.failed[k]-1))) * 3 / 2
		most = max(most, least+time.Duration(slow*float64(time.Second)))
		if !verdict.Lenient {
			least += 5 * time.Second
		}
	}
	w.check(RetryWaits, least <= wait && wait <= most,
		"stream %d: %v after %d failures, the last of which is %v and asks for %v",
		k, wait, s.failed[k], err, verdict.RetryAfter)
}

func (s *streams) rest() {
	w := s.w
	var behind string
	for i := range 60 {
		w.pause(10*time.Second + time.Duration(i)*137*time.Millisecond) // not in step with a rotation, after which each stream is stale for a while
		if w.hasEnded() {
			return
		}
		if behind = s.behind(); behind == "" {
			break
		}
	}
	w.claim(StreamsComplete, behind == "", "%s", behind)
}

// behind says what the reader lacks.
func (s *streams) behind() string {
	stats := s.bridge.Stats()
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, p := range s.keys {
		epoch, number := s.place(k, w.now()-3*time.Second-s.lag-4*w.set.Lag)
		if p.stale || p.at.Epoch != epoch || int(p.at.Offset) < number {
			return fmt.Sprintf("stream %d: %+v of %s %d, %+v", k, *p, epoch, number, stats)
		}
	}
	return ""
}

// The server.

func value(k, i int) string { return fmt.Sprintf("v%d.%d", k, i) }

// madeAt returns when item i of a key is made, from 1 on.
func (s *streams) madeAt(k, i int) time.Duration {
	return s.w.eventAt(i) + time.Duration(k+1)*7*time.Millisecond
}

// made returns how many items of a key are made until a time.
func (s *streams) made(k int, at time.Duration) int {
	return s.w.happenedBy(max(0, at-time.Duration(k+1)*7*time.Millisecond))
}

// epoch returns the epoch of a name. The caller holds world.mu.
func (s *streams) epoch(name string) epoch {
	if i := int(name[0] - 'a'); i < len(s.epochs) {
		return s.epochs[i]
	}
	return epoch{}
}

// place returns the last number of a key at a time. The caller holds world.mu.
func (s *streams) place(k int, at time.Duration) (name string, number int) {
	i := len(s.epochs) - 1
	for s.epochs[i].from > at && i > 0 {
		i--
	}
	return string(rune('a' + i)), s.made(k, at) - s.epochs[i].base[k]
}

func (s *streams) serve(p *peer, words []string) {
	w := s.w
	if words[0] == "ask" {
		r := w.plan.stream(actorAboveAnswer + uint64(atoi(words[2])))
		d := 1 + upTo(r, 300*time.Millisecond)
		if r.IntN(5) > 0 || w.calmed.Load() {
			p.work.Go(func() {
				if p.sleep(d) {
					s.sendSnapshot(p, atoi(words[1]))
				}
			})
		}
		return
	}
	w.mu.Lock()
	s.watched[p.session] = w.now()
	w.mu.Unlock()
	p.work.Go(func() {
		for k := range streamKeys {
			if s.o.Ask != nil {
				s.sendSnapshot(p, k)
			}
			from := s.made(k, w.now()) + 1
			p.work.Go(func() { s.feed(p, k, from) })
		}
		p.say(framed("watching"))
	})
}

// sendSnapshot sends the state of a stream in the stream.
func (s *streams) sendSnapshot(p *peer, k int) {
	s.w.mu.Lock()
	name, number := s.place(k, s.w.now())
	data := framed("snapshot", k, name, 0, number, value(k, s.epoch(name).base[k]+number))
	s.w.mu.Unlock()
	if number > 0 {
		p.say(data)
	}
}

// feed sends the items of a key from one on. Some come twice, some two by two, and some not at all.
func (s *streams) feed(p *peer, k, from int) {
	w := s.w
	joined := 0
	for i := from; ; i++ {
		select {
		case <-time.After(s.madeAt(k, i) + time.Duration(p.session)*time.Microsecond - w.now()):
		case <-p.ctx.Done():
			return
		}
		w.mu.Lock()
		name, number := s.place(k, s.madeAt(k, i))
		w.mu.Unlock()
		fate := (i*31 + k*7) % 12
		switch {
		case w.calmed.Load():
		case fate == 0 && s.skips:
			joined = 0
			continue
		case fate == 1 && joined == 0:
			joined = number
			continue
		}
		first := number
		if joined == number-1 && joined > 0 {
			first = joined
		}
		joined = 0
		data := framed("item", k, name, first, number, value(k, i))
		if p.say(data) != nil || fate == 2 && !w.calmed.Load() && p.say(data) != nil { // two at once may be too many for a small inbox
			return
		}
	}
}

// fetch makes a fetch of a key up to its end. It returns its number, the time of what the server tells, what ends it, and its fault. The number
// is of the key and the instant, because the scheduler decides which of several fetches begins first, and whether one begins that ends at
// the same instant.
func (s *streams) fetch(ctx context.Context, how string, k int) (number uint64, at time.Duration, end func(), err error) {
	w, of := s.w, fetchOf{how, k}
	w.mu.Lock()
	at = w.now()
	number = uint64(at)*streamKeys + uint64(k)
	s.runs++
	r := w.plan.stream(actorAboveAnswer + number)
	by, limited := ctx.Deadline()
	w.check(FetchesBounded, s.runs <= cmp.Or(s.o.Fetches, 4) && limited && time.Until(by) <= s.o.Timeout, "%d of %d, until %v", s.runs, s.o.Fetches, by)
	if s.waits[of] > 0 {
		w.check(FetchWaits, at >= s.waits[of], "%v of stream %d, and it was asked to wait until %v", how, k, s.waits[of])
		delete(s.waits, of)
	}
	w.mu.Unlock()
	fate, slow, told := r.IntN(10), 1+upTo(r, 3*time.Second), time.Duration(0)
	switch {
	case w.calmed.Load(), fate > 4:
		slow = 1 + slow/100
	case fate == 0:
		slow = time.Hour
	case fate < 3:
		err = errFetch
		if told = upTo(r, 10*time.Second); w.set.AskWait {
			err = backoff.RetryAfter(err, told)
		}
	case fate == 3 && w.set.FetchesStop:
		err = backoff.Permanent(errNever)
	}
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		time.Sleep(time.Duration(k) * time.Microsecond) // several fetches may end with one context; the Bridge begins them again in the order in which they ended
		err = ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.set.EarlyState {
		at = w.now()
	}
	if w.set.AskWait && errors.Is(err, errFetch) && ctx.Err() == nil {
		s.waits[of] = w.now() + told
	}
	if errors.Is(err, errNever) {
		s.refused[of] = true
		s.failed[k]++
	}
	return number, at, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.runs--
	}, err
}

var (
	errFetch = errors.New("the server has no time")
	errNever = errors.New("the server has no such thing")
)

// past is Options.Past.
func (s *streams) past(ctx context.Context, r bridge.Request[int]) (page []bridge.Item[int, string], err error) {
	number, at, end, err := s.fetch(ctx, "past", r.Key)
	defer end()
	if err != nil {
		return nil, err
	}
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	name, _ := s.place(r.Key, at)
	base, last := s.epoch(name).base[r.Key], s.made(r.Key, at-s.lag)
	after := base
	if r.After.Epoch == name || r.After.Epoch == "" {
		after += int(r.After.Offset)
	}
	if s.forgets > 0 && after+s.forgets < last {
		return nil, fmt.Errorf("after %d: %w", r.After.Offset, bridge.ErrTooOld)
	}
	for i := after + 1; i <= min(last, after+s.page); i++ {
		page = append(page, bridge.Item[int, string]{Epoch: name, Last: uint64(i - base), Value: value(r.Key, i)})
	}
	if after+s.page >= last && number/streamKeys%2 == 0 {
		return page, io.EOF
	}
	return page, nil
}

// snapshot is Options.Snapshot.
func (s *streams) snapshot(ctx context.Context, k int) (it bridge.Item[int, string], err error) {
	_, at, end, err := s.fetch(ctx, "snapshot", k)
	defer end()
	if err != nil {
		return it, err
	}
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	name, _ := s.place(k, at)
	base, last := s.epoch(name).base[k], s.made(k, at-s.lag)
	if last <= base {
		return it, errFetch
	}
	return bridge.Item[int, string]{Epoch: name, Last: uint64(last - base), Value: value(k, last)}, nil
}

// ask is Options.Ask.
func (s *streams) ask(ctx context.Context, k int) error {
	number, _, end, err := s.fetch(ctx, "ask", k)
	defer end()
	if err != nil {
		return err
	}
	return s.w.conn.Write(ctx, conn.TextMessage(framed("ask", k, number)))
}
