package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/ledger"
)

// The invariants of a ledger.Ledger. The number is that of the promise in its package.
const (
	OneOutcome        Invariant = "ledger 1: an accepted message has exactly one outcome"
	AckedIsThere      Invariant = "ledger 1: a message is acknowledged only if the peer has it"
	InOrderOfAdd      Invariant = "ledger 2: first copies reach the peer in the order of Add, without a gap"
	NotAfterAck       Invariant = "ledger 3: no write of a message begins after its acknowledgement"
	NotWhatItHas      Invariant = "ledger 4: a session writes no message that the peer has said it has"
	OnceBySession     Invariant = "ledger 4: a session writes a message at most once"
	StoredBeforeSent  Invariant = "ledger 5: a message is in the store before it is sent, and a refused one is never sent"
	NumbersOnce       Invariant = "ledger 5: no number stands for two messages"
	LedgerBounded     Invariant = "ledger 6: no more messages than Options.Messages are unacknowledged"
	AllIsDelivered    Invariant = "ledger: without faults each accepted message reaches the peer"
	SurvivesCrash     Invariant = "ledger: what was accepted before a crash reaches the peer in the next run"
	ExactlyOnce       Invariant = "ledger: a peer that remembers its number has each message once"
	NotTooOld         Invariant = "ledger: a message does not expire before its Age, and is not acknowledged after it"
	NumbersAfterCrash Invariant = "ledger 5: no number is used again in the next run"
)

// posts is a ledger.Ledger with a store, and a peer that drops the numbers that it has.
type posts struct {
	nothing
	w      *world
	ledger *ledger.Ledger
	most   int
	report bool // ResetReport

	// world.mu guards what follows.
	disk       *disk
	server     *inbox
	accepted   map[uint64]string // by ID
	refused    map[string]bool
	outcomes   map[uint64][]ledger.Outcome
	ackedAt    map[uint64]time.Duration
	gone       map[uint64]bool          // those that have expired or were dropped
	addedAt    map[string]time.Duration // when Add was called, by text
	acceptedAt map[uint64]time.Duration // when Add has returned
	newest     uint64                   // the last session that has asked what the peer has
	sessions   map[uint64]*postSession
	texts      int
	crashed    *moment // what is left after the crash; nil: there was none
}

// postSession is what the peer knows of a session.
type postSession struct {
	epoch int
	have  uint64          // what the peer has said
	seen  map[uint64]bool // numbers
}

// moment is what a crash leaves.
type moment struct {
	disk     *disk
	server   *inbox
	accepted map[uint64]string
	gone     map[uint64]bool
}

// inbox is the memory of the peer.
type inbox struct {
	epoch int
	have  uint64            // of this epoch
	gaps  bool              // numbers may be left out
	seqs  map[uint64]string // of this epoch
	texts []string          // of all epochs, in the order in which they came
}

func (i *inbox) clone() *inbox {
	return &inbox{i.epoch, i.have, i.gaps, maps.Clone(i.seqs), slices.Clone(i.texts)}
}

// take takes a message, and reports whether its number is the next, or was there before.
func (i *inbox) take(seq uint64, text string) bool {
	if seq == i.have+1 || i.gaps && seq > i.have {
		i.have, i.seqs[seq] = seq, text
		i.texts = append(i.texts, text)
	}
	return i.seqs[seq] != ""
}

// forget begins another epoch.
func (i *inbox) forget() {
	i.epoch, i.have = i.epoch+1, 0
	clear(i.seqs)
}

// disk is a ledger.Store that survives a crash.
type disk struct {
	w         *world
	program   *program // keeps all in a file, too; nil: none
	state     ledger.StoreState
	records   map[uint64]ledger.Record
	ever      map[uint64]bool // IDs
	failUntil time.Duration
	failures  []time.Duration // when Apply has failed
}

func (d *disk) clone() *disk {
	c := &disk{w: d.w, state: d.state, records: maps.Clone(d.records), ever: maps.Clone(d.ever)}
	if d.program != nil {
		c.program = d.program.clone()
	}
	return c
}

// remove removes the file, if there is one.
func (d *disk) remove() {
	if d.program != nil {
		d.program.remove()
	}
}

// running starts the program again if it was killed. The file has all that was stored.
func (d *disk) running() error {
	if d.program == nil || d.program.command != nil {
		return nil
	}
	found, err := d.program.start()
	if err != nil {
		return err
	}
	if wrong := found.differs(d); wrong != "" {
		return fmt.Errorf("after a kill the file has %s", wrong)
	}
	return nil
}

func (d *disk) Load(each func(ledger.Record), _ func(uint64, []byte, error)) (ledger.StoreState, error) {
	if err := d.running(); err != nil {
		return ledger.StoreState{}, err
	}
	for _, id := range slices.Sorted(maps.Keys(d.records)) {
		each(d.records[id])
	}
	return d.state, nil
}

func (d *disk) Apply(c ledger.Change) error {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.w.now() < d.failUntil {
		d.failures = append(d.failures, d.w.now())
		return errDisk
	}
	err := d.running()
	if err == nil && d.program != nil {
		err = d.program.apply(c)
	}
	d.w.check(SurvivesCrash, err == nil, "Apply: %v", err)
	d.state = c.StoreState
	for _, id := range c.Delete {
		delete(d.records, id)
	}
	for _, r := range c.Put {
		r.Data = slices.Clone(r.Data)
		d.records[r.ID], d.ever[r.ID] = r, true
	}
	return nil
}

var errDisk = errors.New("the disk is full")

// storeFailed reports whether the ledger may have ended a session before the client knew of a fault at that time, because
// its store had failed. The session ends "if the change cannot be stored" (ledger.Ledger.Resume), by Conn.Redial. The close
// handshake of Redial takes time, and a fault meanwhile does not change the cause that Redial was given. The caller holds w.mu.
func (w *world) storeFailed(s *session, cause error, fault time.Duration) bool {
	p, ok := w.above.(*posts)
	return ok && errors.Is(cause, errDisk) &&
		slices.ContainsFunc(p.disk.failures, func(at time.Duration) bool { return s.startedAt <= at && at <= fault+w.set.Lag+time.Microsecond })
}

func newPosts(w *world) *posts {
	r := w.plan.stream(actorAboveOptions)
	p := &posts{
		w: w, most: 3 + r.IntN(40), report: r.IntN(4) == 0,
		disk:   &disk{w: w, program: newProgram(), records: make(map[uint64]ledger.Record), ever: make(map[uint64]bool)},
		server: &inbox{gaps: w.set.LedgerAge > 0 || w.set.DropOldest, seqs: make(map[uint64]string)}, accepted: make(map[uint64]string), refused: make(map[string]bool),
		outcomes: make(map[uint64][]ledger.Outcome), ackedAt: make(map[uint64]time.Duration),
		gone: make(map[uint64]bool), addedAt: make(map[string]time.Duration), acceptedAt: make(map[uint64]time.Duration), sessions: make(map[uint64]*postSession),
	}
	o := &ledger.Options{Encode: p.encode, Ack: readAck, Messages: p.most, OnDone: p.onDone, Store: p.disk, Age: w.set.LedgerAge, DropOldest: w.set.DropOldest}
	if p.report {
		o.OnReset = ledger.ResetReport
	}
	l, err := ledger.New(o)
	if err != nil {
		panic(err)
	}
	p.ledger = l
	return p
}

func (p *posts) options(o *reconnect.Options) { o.Layers = append(o.Layers, p.ledger.Layer()) }

func readAck(m reconnect.Message) (uint64, bool) {
	words, ok := unframed(string(m.Data))
	if !ok || words[0] != "ack" {
		return 0, false
	}
	return uint64(atoi(words[1])), true
}

func encodePost(e ledger.Entry) (conn.Message, error) {
	return conn.TextMessage(framed("post", e.Seq, string(e.Data))), nil
}

func (p *posts) encode(e ledger.Entry) (conn.Message, error) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	at, acked := p.ackedAt[e.ID]
	w.check(NotAfterAck, !acked || at == w.now(), "%s is written, and was acknowledged at %v", e.Data, at)
	w.check(StoredBeforeSent, p.disk.ever[e.ID], "%s is written, and was not stored", e.Data)
	return encodePost(e)
}

func (p *posts) onDone(s ledger.Settled) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	p.outcomes[s.ID] = append(p.outcomes[s.ID], s.Outcome)
	w.remark("%s: %v", s.Data, s.Outcome)
	w.check(OneOutcome, len(p.outcomes[s.ID]) == 1, "%s: %v", s.Data, p.outcomes[s.ID])
	switch s.Outcome {
	case ledger.OutcomeAcknowledged:
		p.ackedAt[s.ID] = w.now()
		w.check(AckedIsThere, slices.Contains(p.server.texts, string(s.Data)), "%s", s.Data)
		if at, ok := p.acceptedAt[s.ID]; ok && w.set.LedgerAge > 0 {
			w.check(NotTooOld, w.now()-at <= w.set.LedgerAge, "%s, which was accepted at %v, is acknowledged", s.Data, at)
		}
	case ledger.OutcomeExpired:
		p.gone[s.ID] = true
		w.check(NotTooOld, w.set.LedgerAge > 0 && w.now()-p.addedAt[string(s.Data)] >= w.set.LedgerAge, "%s, which was added at %v", s.Data, p.addedAt[string(s.Data)])
	case ledger.OutcomeDropped:
		p.gone[s.ID] = true
		w.check(OneOutcome, w.set.DropOldest, "%s is %v", s.Data, s.Outcome)
	case ledger.OutcomeForgotten:
		w.check(OneOutcome, p.report && p.server.epoch > 0, "%s is %v", s.Data, s.Outcome)
	case ledger.OutcomeLeft:
		w.check(OneOutcome, w.closedOrMay(), "%s is %v", s.Data, s.Outcome)
	default:
		w.check(OneOutcome, false, "%s is %v", s.Data, s.Outcome)
	}
}

// open asks the peer what it has.
func (p *posts) open(o *reconnect.Opening) error {
	p.w.mu.Lock()
	p.w.of(o.Session).delivering = true
	p.w.mu.Unlock()
	if err := o.Write(conn.TextMessage(framed("hello"))); err != nil {
		return err
	}
	for {
		m, err := o.Read()
		if err != nil {
			return err
		}
		if words, ok := unframed(string(m.Data)); ok && words[0] == "have" {
			return p.ledger.ResumeEpoch(o, words[1], uint64(atoi(words[2])))
		}
		if err := o.Deliver(m); err != nil {
			return err
		}
	}
}

// The user.

func (p *posts) step(r *rand.Rand, e Event) {
	w := p.w
	switch n := r.IntN(16); {
	case n < 10:
		for range 1 + r.IntN(5) {
			p.add(p.ledger.Add)
			time.Sleep(1 + upTo(r, 50*time.Microsecond))
		}
	case n < 12:
		ctx, cancel := context.WithTimeout(context.Background(), 1+upTo(r, 5*time.Second))
		defer cancel()
		p.add(func(data []byte) (uint64, error) { return p.ledger.AddWait(ctx, data) })
	case n == 12:
		limit := 1 + upTo(r, 20*time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		at, id := w.now(), p.ledger.LastID()
		err := p.ledger.Wait(ctx, id)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.check(ContextOfItsOwn, !errors.Is(err, context.DeadlineExceeded) || w.now() == at+limit, "Wait has the error of a context after %v of %v", w.now()-at, limit)
		there := slices.Contains(p.server.texts, p.accepted[id]) // OnDone may come after this, at the same instant
		w.check(AckedIsThere, err != nil || there, "Wait returns nil for %d, which is %s", id, p.accepted[id])
	case n == 13:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.remark("the disk is full")
		p.disk.failUntil = w.now() + upTo(r, 3*time.Second)
	case n == 14:
		p.crash()
	default: // the peer forgets us
		w.mu.Lock()
		w.remark("the peer forgets")
		p.server.forget()
		w.mu.Unlock()
		if !w.calmed.Load() {
			w.oneByOne("forgets", (*conntest.Pipe).Reset)
		}
	}
}

func (p *posts) add(add func([]byte) (uint64, error)) {
	w := p.w
	w.mu.Lock()
	p.texts++
	text := fmt.Sprint("p", p.texts)
	p.addedAt[text] = w.now()
	w.mu.Unlock()
	id, err := add([]byte(text))
	stats := p.ledger.Stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remark("add %s: %t", text, err == nil)
	w.check(LedgerBounded, stats.Unacked <= p.most, "%d of %d", stats.Unacked, p.most)
	if err != nil {
		p.refused[text] = true
		w.secrets(err)
		full := errors.Is(err, ledger.ErrFull) || errors.Is(err, errDisk) || errors.Is(err, context.DeadlineExceeded)
		w.check(StoredBeforeSent, full || errors.Is(err, net.ErrClosed) && w.closedOrMay(), "Add: %v", err)
		return
	}
	w.check(NumbersOnce, p.accepted[id] == "", "the ID %d stands for %s and %s", id, p.accepted[id], text)
	w.check(StoredBeforeSent, p.disk.ever[id], "%s was accepted, and was not stored", text)
	p.accepted[id], p.acceptedAt[id] = text, w.now()
}

// crash keeps what a crash would leave now: the disk, and what the peer has.
func (p *posts) crash() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.crashed == nil {
		p.w.remark("crash")
		p.crashed = &moment{p.disk.clone(), p.server.clone(), maps.Clone(p.accepted), maps.Clone(p.gone)}
	}
}

func (p *posts) rest() {
	w := p.w
	p.add(p.ledger.Add) // because the last acknowledgement may be lost, and the next one counts for it
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	err := p.ledger.WaitAll(ctx)
	if w.hasEnded() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(AllIsDelivered, err == nil, "%v", err)
	if !p.report || p.server.epoch == 0 {
		p.complete(AllIsDelivered, p.server, p.accepted, p.gone)
	}
}

// complete checks that the peer has all messages. The caller holds world.mu.
func (p *posts) complete(i Invariant, server *inbox, accepted map[uint64]string, gone map[uint64]bool) {
	count := make(map[string]int)
	for _, text := range server.texts {
		count[text]++
		p.w.check(ExactlyOnce, count[text] == 1 || server.epoch > 0, "%s %d times", text, count[text])
		p.w.check(StoredBeforeSent, !p.refused[text], "%s was refused, and came", text)
	}
	for id, text := range accepted {
		p.w.check(i, count[text] > 0 || gone[id], "%s, which is %d, did not come", text, id)
	}
}

// over is the next run of the program, after a crash or after the end. Its Conn has no faults.
func (p *posts) over() {
	w := p.w
	p.crash()
	m := p.crashed
	defer m.disk.remove()
	options := &ledger.Options{Encode: encodePost, Ack: readAck, Store: m.disk}
	if p.report {
		options.OnReset = ledger.ResetReport
	}
	last := m.disk.state.LastID
	l, err := ledger.New(options)
	if err != nil {
		w.claim(SurvivesCrash, false, "New: %v", err)
		return
	}
	server := conntest.NewServer(w.network, "next.test:80", func(ctx context.Context, c *websocket.Conn, _ *http.Request) { m.serve(ctx, w, c) })
	server.Options = &websocket.AcceptOptions{InsecureSkipVerify: true}
	defer server.Close()
	c, err := reconnect.New(&dialer.WebSocket{URL: "ws://next.test/", DialContext: w.network.DialContext}, &reconnect.Options{
		Layers: []*reconnect.Layer{l.Layer()}, Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard},
		OnSession: func(_ context.Context, o *reconnect.Opening) error {
			have, err := o.Read()
			if err != nil {
				return err
			}
			words, _ := unframed(string(have.Data))
			return l.ResumeEpoch(o, words[1], uint64(atoi(words[2])))
		},
	})
	if err != nil {
		w.claim(SurvivesCrash, false, "New: %v", err)
		return
	}
	id, err := l.Add([]byte("next"))
	w.claim(NumbersAfterCrash, err == nil && id > last, "the ID %d after %d: %v", id, last, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = l.WaitAll(ctx)
	c.Close()
	<-c.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(SurvivesCrash, err == nil, "%v", err)
	if !p.report || m.server.epoch == 0 {
		p.complete(SurvivesCrash, m.server, m.accepted, m.gone)
	}
}

// serve serves the next run.
func (m *moment) serve(ctx context.Context, w *world, c *websocket.Conn) {
	say := func(words ...any) error { return c.Write(ctx, websocket.MessageText, []byte(framed(words...))) }
	if say("have", fmt.Sprint("e", m.server.epoch), m.server.have) != nil {
		return
	}
	for {
		_, data, err := c.Read(ctx)
		if err != nil {
			return
		}
		words, ok := unframed(string(data))
		seq := uint64(atoi(words[1]))
		w.claim(InOrderOfAdd, ok && m.server.take(seq, words[2]), "in the next run %v came after %d", words, m.server.have)
		if say("ack", m.server.have) != nil {
			return
		}
	}
}

func (p *posts) finish() {
	w := p.w
	defer p.disk.remove()
	stats := p.ledger.Stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, text := range p.accepted {
		w.check(OneOutcome, len(p.outcomes[id]) == 1, "%s: %v", text, p.outcomes[id])
	}
	w.check(OneOutcome, stats.Unacked == 0 && int(stats.Added) == len(p.accepted), "%+v, and %d were accepted", stats, len(p.accepted))
}

// The server.

func (p *posts) serve(peer *peer, words []string) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if words[0] == "hello" {
		p.newest = max(p.newest, peer.session)
		p.sessions[peer.session] = &postSession{p.server.epoch, p.server.have, make(map[uint64]bool)}
		peer.later(1, framed("have", fmt.Sprint("e", p.server.epoch), p.server.have))
		return
	}
	s, seq, text := p.sessions[peer.session], uint64(atoi(words[1])), words[2]
	if s.epoch != p.server.epoch { // the peer that knew it is gone
		return
	}
	w.remark("%v by %d", strings.Join(words, " "), peer.session)
	w.check(OnceBySession, !s.seen[seq], "%v twice by %d", words, peer.session)
	s.seen[seq] = true
	w.check(NotWhatItHas, seq > s.have, "%v by %d, whose peer had %d", words, peer.session, s.have)
	was := p.server.seqs[seq]
	if was != "" {
		w.check(NumbersOnce, was == text, "the number %d stands for %s and %s", seq, was, text)
	}
	late := p.server.gaps && peer.session < p.newest // what has expired may come by an older connection
	w.check(InOrderOfAdd, p.server.take(seq, text) || late, "%v by %d, after %d", words, peer.session, p.server.have)
	r := w.plan.stream(actorAboveAnswer + seq<<20 + peer.session)
	delay := 1 + upTo(r, 300*time.Millisecond)
	if r.IntN(5) == 0 && !w.calmed.Load() {
		return
	}
	peer.work.Go(func() {
		if !peer.sleep(delay) {
			return
		}
		w.mu.Lock()
		have, same := p.server.have, s.epoch == p.server.epoch
		w.mu.Unlock()
		if same {
			peer.say(framed("ack", have))
		}
	})
}
