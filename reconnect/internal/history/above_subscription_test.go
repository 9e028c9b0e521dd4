package history

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/subscription"
)

// The invariants of a subscription.Set. The number is that of the guarantee in its package.
const (
	HeldIsAgreed         Invariant = "subscription 1: a key is held only if the server has agreed to it, in that session"
	WantedStays          Invariant = "subscription 1: no failure changes which keys are wanted"
	HeldIsWanted         Invariant = "subscription 2: without faults the server sends what is wanted, and nothing else"
	RemovalHasReason     Invariant = "subscription 2: a removal is sent only after a request for the key, and after an answer to one"
	NoAnswerAsksAgain    Invariant = "subscription 3: no id is used twice"
	InTheBatch           Invariant = "subscription 4: a request has no more keys than Batch, and a refused key is asked for alone"
	AnswerIsTaken        Invariant = "subscription 5: an answer to no request of the Set goes on to the reader, and no other answer does"
	FewAnswersDue        Invariant = "subscription 6: no more requests than InFlight wait for their answers, or almost twice as many if some may be lost"
	AskWaits             Invariant = "subscription: no key is asked for before the time for which the server has asked"
	BackoffIsTold        Invariant = "subscription: Backoff gets the number of rejections in a row, the last wait, and the time since the first"
	WaitEnds             Invariant = "subscription 7: Wait ends with its context, and when the Conn ends"
	AskedAgain           Invariant = "subscription: at the mark the session has asked for each key that was wanted when it began"
	TopicMarkIsSafe      Invariant = "subscription: no event is missing between a refetch at the mark and the events of a key"
	TopicNothingMissing  Invariant = "subscription: no event of a key is missing in a session, except where a seam says so"
	RemovedIsSilent      Invariant = "subscription: without faults no event comes of a key that is not wanted"
	EssentialBeforeReady Invariant = "subscription: a ready session has asked for the essential keys"
)

// topics is a subscription.Set, with a server that numbers the events of each key.
type topics struct {
	nothing
	w         *world
	set       *subscription.Set[string]
	keys      []string
	batch     int
	inFlight  int
	timeout   time.Duration
	essential bool // essentialKey is
	drops     bool // the bad key is given up when it is refused

	// world.mu guards what follows.
	refs     map[string]int
	troubled map[string]bool          // the server has not agreed since the key was rejected
	rejected map[string]time.Duration // when the key was
	since    map[string]time.Duration // when a key was wanted
	requests map[string]*request      // by id
	sessions map[uint64]*topicSession
	have     map[string]int           // the last event that the application knows of; no entry: it knows nothing for certain
	waits    map[string]wish          // when the server wants the next request for a key
	told     map[string]time.Duration // how long it has asked to wait, in the last refusal
	row      map[string]*rejections   // of a key
	rejects  []string                 // the keys that were rejected, and about which Backoff was not asked yet
	stopped  time.Duration            // since when nothing has changed, and everything has its answer; 0: not yet
}

// wish is when the server wants the next request for a key, and the session by which it has said so.
type wish struct {
	at      time.Duration
	session uint64
}

// rejections are those of a key in a row.
type rejections struct {
	n     int
	first time.Duration // when the first was
	wait  time.Duration // the last
}

// request is a request for keys.
type request struct {
	op       subscription.Op
	keys     []string
	at       time.Duration // when it was made
	session  uint64        // by which it came; 0: it has not
	answered bool          // the client has got the answer
	agreed   bool          // the server has said so
	heard    time.Duration // when the client has got the answer
}

// topicSession is a session as the server and the reader see it.
type topicSession struct {
	at     time.Duration // when OnSession has returned
	wanted []string      // then, except rejected keys
	live   map[string]*topic
	begun  int                    // subscriptions
	asked  map[string]*request    // the last for each key
	next   map[string]map[int]int // the next event that the reader expects, by key and subscription
}

// topic is what the server sends of a key.
type topic struct{ end context.CancelFunc }

// badKey is always refused, and essentialKey is asked for before a session is ready.
const (
	badKey       = "K0"
	essentialKey = "K1"
)

func newTopics(w *world) *topics {
	r := w.plan.stream(actorAboveOptions)
	t := &topics{
		w: w, batch: 1 + r.IntN(4), inFlight: 1 + r.IntN(3), timeout: 2*time.Second + upTo(r, 8*time.Second), drops: r.IntN(2) == 0,
		refs: make(map[string]int), troubled: make(map[string]bool), rejected: make(map[string]time.Duration), since: make(map[string]time.Duration), requests: make(map[string]*request), sessions: make(map[uint64]*topicSession), have: make(map[string]int),
		waits: make(map[string]wish), told: make(map[string]time.Duration), row: make(map[string]*rejections),
	}
	for i := range 6 {
		t.keys = append(t.keys, fmt.Sprint("K", i))
	}
	o := &subscription.Options[string]{
		Encode: t.encode, Answer: t.answer, Batch: t.batch, InFlight: t.inFlight, Timeout: t.timeout, OnReject: t.onReject,
		Backoff: toldBackoff{t},
	}
	if t.essential = r.IntN(2) == 0; t.essential {
		o.Essential = func(k string) bool { return k == essentialKey }
	}
	set, err := subscription.New(o)
	if err != nil {
		panic(err)
	}
	t.set = set
	t.add(t.keys[1 : 2+r.IntN(4)]...)
	return t
}

// toldBackoff is Options.Backoff. It checks what it gets.
type toldBackoff struct{ *topics }

func (t toldBackoff) Next(h backoff.History, r *rand.Rand) (backoff.Step, bool) {
	step, ok := (&backoff.Exponential{Base: 500 * time.Millisecond, Cap: 20 * time.Second, Jitter: backoff.JitterNone}).Next(h, r)
	w := t.w
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(t.rejects, func(k string) bool { // the workers of two sessions may ask at one instant
		row := t.row[k]
		return h.N == row.n-1 && h.Prev == row.wait && h.Elapsed == w.now()-row.first
	})
	w.check(BackoffIsTold, i >= 0, "%+v: of %v", h, t.rejects)
	if i >= 0 {
		k := t.rejects[i]
		t.row[k].wait = step.Wait + t.told[k]
		t.rejects = slices.Delete(t.rejects, i, i+1)
	}
	return step, ok
}

func (t *topics) options(o *reconnect.Options) {
	o.Layers = append(o.Layers, t.set.Layer(), &reconnect.Layer{Ready: t.ready})
}

func (t *topics) open(o *reconnect.Opening) error {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.w.of(o.Session).delivering = true // the Set delivers what comes before the answers
	s := t.session(o.Session)
	s.at = t.w.now()
	for _, k := range t.keys {
		if t.refs[k] > 0 && !t.troubled[k] {
			s.wanted = append(s.wanted, k)
		}
	}
	return nil
}

func (t *topics) ready(session uint64) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if t.essential && t.due(session, essentialKey) {
		q := t.session(session).asked[essentialKey]
		t.w.check(EssentialBeforeReady, t.agreedBy(session, essentialKey), "session %d: %+v", session, q)
	}
}

// due reports whether a session must have a key when it has all keys that were wanted when it began. The caller holds world.mu.
func (t *topics) due(session uint64, key string) bool {
	s := t.session(session)
	return slices.Contains(s.wanted, key) && t.refs[key] > 0 && t.since[key] < s.at && (t.rejected[key] == 0 || t.rejected[key] < s.at)
}

// session returns the record of a session. The caller holds world.mu.
func (t *topics) session(n uint64) *topicSession {
	s := t.sessions[n]
	if s == nil {
		s = &topicSession{live: make(map[string]*topic), asked: make(map[string]*request), next: make(map[string]map[int]int)}
		t.sessions[n] = s
	}
	return s
}

// The user.

func (t *topics) step(r *rand.Rand, e Event) {
	w := t.w
	k := t.keys[r.IntN(len(t.keys))]
	switch r.IntN(8) {
	case 0, 1:
		t.add(k)
	case 2, 3:
		t.remove(k)
	case 4:
		var keys []string
		for _, k := range t.keys {
			if r.IntN(2) == 0 {
				keys = append(keys, k)
			}
		}
		t.replace(keys...)
	case 5:
		t.wait(r, func(ctx context.Context) error { return t.set.Wait(ctx, k) })
	case 6:
		t.wait(r, t.set.Synced)
	case 7:
		w.actNext("OnMessage", func(ctx context.Context) {
			at := w.now()
			err := t.set.Wait(ctx, k)
			w.claim(WaitEnds, w.now() == at, "Wait in a callback took %v: %v", w.now()-at, err)
		})
	}
	t.look()
}

// add is Set.Add. The record comes before it, because the server may be asked at once.
func (t *topics) add(keys ...string) {
	t.w.mu.Lock()
	for _, k := range keys {
		if t.refs[k]++; t.refs[k] == 1 {
			t.since[k] = t.w.now()
		}
	}
	t.w.remark("add %v", keys)
	t.w.mu.Unlock()
	t.set.Add(keys...)
}

func (t *topics) remove(key string) {
	t.w.mu.Lock()
	if t.refs[key] = max(0, t.refs[key]-1); t.refs[key] == 0 {
		delete(t.have, key)
		delete(t.waits, key)
	}
	t.w.remark("remove %s", key)
	t.w.mu.Unlock()
	t.set.Remove(key)
}

func (t *topics) replace(keys ...string) {
	t.w.mu.Lock()
	for _, k := range t.keys {
		switch in := slices.Contains(keys, k); {
		case !in:
			t.refs[k] = 0
			delete(t.have, k)
			delete(t.waits, k)
		case t.refs[k] == 0:
			t.refs[k], t.since[k] = 1, t.w.now()
		}
	}
	t.w.remark("replace by %v", keys)
	t.w.mu.Unlock()
	t.set.Replace(keys...)
}

// wait calls Wait or Synced.
func (t *topics) wait(r *rand.Rand, f func(ctx context.Context) error) {
	w := t.w
	limit := 1 + upTo(r, 20*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	at := w.now()
	err := f(ctx)
	took := w.now() - at
	_, rejected := errors.AsType[*subscription.RejectedError](err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remark("waited: %t", err == nil)
	w.secrets(err)
	w.check(WaitEnds, took <= limit, "Wait took %v of %v", took, limit)
	if errors.Is(err, context.DeadlineExceeded) && !rejected {
		w.check(ContextOfItsOwn, took == limit, "Wait has the error of a context after %v of %v: %v", took, limit, err)
	}
}

// look compares the Set with the record.
func (t *topics) look() {
	w := t.w
	items := t.set.Snapshot()
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := make(map[string]bool)
	for _, item := range items {
		wanted[item.Key] = item.State != subscription.StateNone && item.State != subscription.StateLeaving
		if item.State == subscription.StateHeld {
			w.check(HeldIsAgreed, t.agreed(item.Key), "%s is held, and no session that lives has agreed", item.Key)
		}
	}
	for _, k := range t.keys {
		w.check(WantedStays, wanted[k] == (t.refs[k] > 0), "%s is wanted: %t, and was added %d times: %v", k, wanted[k], t.refs[k], items)
	}
}

// agreed reports whether the server has agreed to a key in a session that lives, or has ended at this instant, perhaps
// after the Set was read. The caller holds world.mu.
func (t *topics) agreed(key string) bool {
	for _, r := range t.requests {
		s := t.w.of(r.session)
		lives := !s.done || s.endedAt == t.w.now()
		if lives && r.op == subscription.OpSubscribe && r.agreed && slices.Contains(r.keys, key) {
			return true
		}
	}
	return false
}

// agreedBy reports whether the server has agreed to a key in a session, to the last request for it or to an earlier one
// whose answer came late. The caller holds world.mu.
func (t *topics) agreedBy(session uint64, key string) bool {
	for _, r := range t.requests {
		if r.session == session && r.op == subscription.OpSubscribe && r.agreed && slices.Contains(r.keys, key) {
			return true
		}
	}
	return false
}

// settled reports whether the client has got an answer to a subscription of a key in a session since then. The caller
// holds world.mu.
func (t *topics) settled(session uint64, key string, since time.Duration) bool {
	for _, r := range t.requests {
		if r.session == session && r.op == subscription.OpSubscribe && r.answered && r.heard >= since && slices.Contains(r.keys, key) {
			return true
		}
	}
	return false
}

func (t *topics) encode(r *subscription.Request[string]) (conn.Message, error) {
	w := t.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(NoAnswerAsksAgain, t.requests[r.ID] == nil, "the id %s twice", r.ID)
	w.check(InTheBatch, len(r.Keys) <= t.batch, "%d keys of %d", len(r.Keys), t.batch)
	due := 0
	for _, q := range t.requests {
		if !q.answered && q.at > w.now()-t.timeout && q.session != 0 && !w.of(q.session).done {
			due++
		}
	}
	most := 2*t.inFlight - 2
	if w.rotated {
		most += 2*t.inFlight - 1
	}
	w.check(FewAnswersDue, due <= most, "%d requests wait for their answers, and one more is made: InFlight is %d", due, t.inFlight)
	for _, k := range r.Keys {
		if wish, ok := t.waits[k]; ok && r.Op == subscription.OpSubscribe {
			// A session that has ended may not have judged the refusal, and another one does not wait for the refusal of a batch.
			if !w.of(wish.session).done && !w.rotated {
				w.check(AskWaits, w.now() >= wish.at, "%s, and the server wants that at %v", k, wish.at)
			}
			delete(t.waits, k)
		}
	}
	t.requests[r.ID] = &request{op: r.Op, keys: slices.Clone(r.Keys), at: w.now()}
	w.remark("%v %v", r.Op, r.Keys)
	op := "sub"
	if r.Op == subscription.OpUnsubscribe {
		op = "unsub"
	}
	return conn.TextMessage(framed(op, r.ID, strings.Join(r.Keys, ","))), nil
}

func (t *topics) answer(m reconnect.Message) (a subscription.Answer[string], ok bool) {
	w := t.w
	words, ok := unframed(string(m.Data))
	if !ok || words[0] == "ev" {
		return a, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if words[0] == "ended" { // OnReject comes later, if a request waits for its turn
		t.troubled[words[1]], t.rejected[words[1]] = true, w.now()
		return subscription.Answer[string]{Keys: []string{words[1]}, Ended: true, Deliver: true}, true
	}
	var told time.Duration
	if a.ID = words[1]; words[0] == "no" {
		told = time.Duration(atoi(words[2]))
		a.Err = backoff.RetryAfter(errRefused, told)
	}
	r := t.requests[a.ID]
	if r == nil || r.session != m.Session {
		return a, true
	}
	again := r.answered
	if r.answered = true; !again {
		r.heard = w.now()
		if s := w.of(m.Session); a.Err == nil && !s.ready {
			s.progressAt = w.now() // the Set calls Opening.Progress
		}
	}
	for _, k := range r.keys {
		switch {
		case a.Err != nil:
			t.troubled[k], t.rejected[k] = true, w.now()
			// Not if nobody wants the key, if the answer is late, if OnReject may have to decide about the refusal by another session, or
			// if a session that opens divides the request.
			divided := len(r.keys) > 1 && !w.of(m.Session).ready
			if told > 0 && !again && !divided && t.refs[k] > 0 && r.op == subscription.OpSubscribe && r.at+t.timeout > w.now() && !w.rotated {
				t.waits[k] = wish{w.now() + told, m.Session}
			}
		case r.op == subscription.OpSubscribe:
			delete(t.waits, k)
			givenUp := w.set.Late > 0 || r.at < t.rejected[k] // the answer of a late peer may not count either
			t.troubled[k] = t.troubled[k] && givenUp
		}
	}
	return a, true
}

var errRefused = errors.New("the key was refused")

func (t *topics) onReject(r subscription.Rejection[string]) subscription.Decision {
	w := t.w
	w.mu.Lock()
	defer w.mu.Unlock()
	t.troubled[r.Key], t.rejected[r.Key] = true, w.now()
	w.remark("%s is rejected: %v", r.Key, errors.Is(r.Err, errRefused))
	row := t.row[r.Key]
	if r.Tries == 1 || row == nil {
		row = &rejections{first: w.now()}
		t.row[r.Key] = row
	}
	row.n++
	w.check(BackoffIsTold, r.Tries == row.n, "rejection %d of %s, and %d were in a row", r.Tries, r.Key, row.n)
	t.told[r.Key] = backoff.Classify(r.Err).RetryAfter
	if t.drops && r.Key == badKey && errors.Is(r.Err, errRefused) {
		delete(t.waits, r.Key)
		return subscription.DecisionDrop
	}
	t.rejects = append(t.rejects, r.Key)
	return subscription.DecisionRetry
}

func (t *topics) hear(session uint64, words []string) {
	w := t.w
	switch words[0] {
	case "ended":
		delete(t.have, words[1])
		return
	case "ok", "no":
		w.check(AnswerIsTaken, t.requests[words[1]] == nil, "the answer to %+v", t.requests[words[1]])
		return
	}
	key := words[1]
	number, i, n := atoi(words[2]), atoi(words[3]), atoi(words[4])
	w.readLog("%s %d of %d", key, n, session)
	w.check(RemovedIsSilent, t.stopped == 0 || t.refs[key] > 0, "%s, which nobody wants since %v", key, t.stopped)
	s := t.session(session)
	if s.next[key] == nil {
		s.next[key] = make(map[int]int)
	}
	next := s.next[key][number]
	if i > next {
		w.gaps += i - next
	}
	w.check(TopicNothingMissing, i >= next && w.gaps <= w.dropped, "session %d, %s: event %d, and %d was expected; seams said %d dropped", session, key, i, next, w.dropped)
	s.next[key][number] = i + 1
	if have, ok := t.have[key]; ok && !w.mixes() {
		w.check(TopicMarkIsSafe, n <= have+1, "%s: event %d after %d", key, n, have)
		t.have[key] = max(have, n)
	}
}

func (t *topics) seam(seam *reconnect.Seam) {
	w := t.w
	if seam.Lost > 0 || seam.Dropped > 0 {
		clear(t.have)
	}
	if !seam.Refetch || seam.Lost > 0 || seam.Dropped > 0 {
		return
	}
	for _, k := range t.keys {
		if t.due(seam.Session, k) {
			q := t.session(seam.Session).asked[k]
			w.check(AskedAgain, t.agreedBy(seam.Session, k), "%s at the mark of session %d: %+v", k, seam.Session, q)
			t.have[k] = t.happened(k)
		}
	}
}

func (t *topics) rest() {
	w := t.w
	t.add("K3", "K4")
	w.pause(5*time.Second + time.Millisecond)
	t.replace(badKey, "K2", "K3") // so that there is something to remove
	if w.set.RotateAfter != 0 {   // there are always requests on their way
		return
	}
	var missing []string
	for range 40 { // a refused key waits for its turn
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := t.set.Synced(ctx)
		cancel()
		if w.hasEnded() {
			return
		}
		if missing = t.missing(); len(missing) == 0 && (err == nil || t.wants(badKey)) {
			break
		}
		w.pause(10 * time.Second)
	}
	w.pause(10*time.Second + time.Millisecond) // for what is under way, and a reader that is behind
	if w.hasEnded() {
		return
	}
	t.look()
	w.mu.Lock()
	w.check(HeldIsWanted, len(missing) == 0, "not subscribed: %v", missing)
	session := w.conn.Status().Session
	for _, k := range slices.Sorted(maps.Keys(t.session(session).live)) {
		w.check(HeldIsWanted, t.refs[k] > 0, "%s is subscribed, and nobody wants it", k)
	}
	t.stopped = w.now()
	w.mu.Unlock()
	w.pause(time.Minute)
}

func (t *topics) wants(key string) bool {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	return t.refs[key] > 0
}

// missing returns the keys that are wanted, and that the server does not send.
func (t *topics) missing() (keys []string) {
	session := t.w.conn.Status().Session
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	for _, k := range t.keys {
		if k != badKey && t.refs[k] > 0 && t.session(session).live[k] == nil {
			keys = append(keys, k)
		}
	}
	return keys
}

// The server.

// eventAt returns when event n of a key happens, from 1 on.
func (t *topics) eventAt(key string, n int) time.Duration {
	i := atoi(key[1:]) + 1
	salt := time.Duration(uint64(n*7+i) * 0x9e3779b97f4a7c15 >> 44)
	tick := time.Duration(2+i) * time.Second
	in := int(t.w.plan.Length / tick)
	if n <= in {
		return time.Duration(n)*tick + salt
	}
	return time.Duration(in)*tick + time.Duration(n-in)*20*time.Second + salt
}

// happened returns how many events of a key have happened.
func (t *topics) happened(key string) (n int) {
	for at := t.w.now(); t.eventAt(key, n+1) <= at; n++ {
	}
	return n
}

// draws returns the random numbers of the server for a request. They depend on its keys and the instant, and not on its id: the
// scheduler decides which of two requests of one instant has the smaller id.
func (t *topics) draws(p *peer, words []string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, words[0], words[2], p.session, t.w.now())
	return t.w.plan.stream(actorAboveAnswer + h.Sum64()>>1)
}

func (t *topics) serve(p *peer, words []string) {
	w := t.w
	id, keys := words[1], strings.Split(words[2], ",")
	calm, r := w.calmed.Load(), t.draws(p, words)
	w.mu.Lock()
	q, s := t.requests[id], t.session(p.session)
	w.remark("the server gets %s %s by %d", words[0], words[2], p.session)
	w.check(NoAnswerAsksAgain, q != nil && q.session == 0, "the request %v came twice, or nobody has made it", words)
	if q == nil {
		w.mu.Unlock()
		return
	}
	q.session = p.session
	fate := r.IntN(20)
	if calm {
		fate = 19
	}
	refused := fate == 0 || slices.Contains(keys, badKey) && q.op == subscription.OpSubscribe
	for _, k := range keys {
		switch {
		case q.op == subscription.OpSubscribe:
			s.asked[k] = q
			if !refused && fate != 1 {
				t.begin(p, s, k)
			}
		default:
			before := s.asked[k]
			w.check(RemovalHasReason, before != nil, "%s was never asked for in session %d, and is removed", k, p.session)
			w.check(RemovalHasReason, before == nil || t.settled(p.session, k, before.at) || before.at+t.timeout <= w.now(), "%s is removed before the answer to its request, %v old", k, w.now())
			if !refused && fate != 1 && s.live[k] != nil {
				s.live[k].end()
				delete(s.live, k)
			}
		}
	}
	w.mu.Unlock()
	delay := 1 + upTo(r, 300*time.Millisecond)
	switch fate {
	case 1, 2: // nothing was done, or all of it; and there is no answer
		return
	case 3: // the answer is late
		delay = upTo(r, 2*t.timeout)
	}
	told := upTo(r, 10*time.Second)
	if told < 5*time.Second || !w.set.AskWait {
		told = 0
	}
	p.work.Go(func() {
		if !p.sleep(delay) {
			return
		}
		answer := framed("ok", id)
		if refused {
			answer = framed("no", id, int64(told))
		}
		w.mu.Lock()
		q.agreed = !refused
		w.mu.Unlock()
		p.say(answer)
		if fate == 4 { // again, and an answer to a request that there is not
			p.say(answer)
			p.say(framed("ok", "x"+id))
		}
		if fate == 5 && p.sleep(delay) && !w.calmed.Load() { // the server ends the first key
			w.mu.Lock()
			live := s.live[keys[0]]
			delete(s.live, keys[0])
			w.mu.Unlock()
			if live != nil {
				live.end()
				p.say(framed("ended", keys[0]))
			}
		}
	})
}

// begin sends the events of a key from now on, unless they are sent already. The caller holds world.mu.
func (t *topics) begin(p *peer, s *topicSession, key string) {
	if s.live[key] != nil {
		return
	}
	w := t.w
	ctx, cancel := context.WithCancel(p.ctx)
	s.begun++
	number := s.begun
	s.live[key] = &topic{cancel}
	from := t.happened(key) + 1
	p.work.Go(func() {
		defer cancel()
		for i, n := 0, from; ; i, n = i+1, n+1 {
			w.mu.Lock()
			at := max(t.eventAt(key, n)+time.Duration(p.session)*time.Microsecond, w.silentUntil)
			w.mu.Unlock()
			select {
			case <-time.After(at - w.now()):
			case <-ctx.Done():
				return
			}
			if p.say(framed("ev", key, number, i, n)) != nil {
				return
			}
		}
	})
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
