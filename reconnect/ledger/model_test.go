package ledger_test

// This file tries a Ledger with random histories in virtual time, against a model of a peer.

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/ledger"
)

// ledgerModel is a peer, which takes what is new and drops what it has, and what is known of each
// message. Only the driver's goroutine uses it, and OnSession and OnDone while the driver waits.
type ledgerModel struct {
	t      *testing.T
	random *rand.Rand
	o      ledger.Options
	s      *ledgerScene
	single bool // each message is acknowledged by itself, in any order

	epoch    int             // of the peer; it goes up when the peer forgets
	have     uint64          // the last number that it has
	lastID   uint64          // the last message that it has got for the first time in this epoch
	got      map[uint64]bool // the messages that it has ever got
	sessions []*modelSession
	next     *conntest.Fake // which was accepted last

	added   uint64     // the last message that was added
	mu      sync.Mutex // guards ended, because several calls of OnDone may run at once
	ended   map[uint64]ledger.Outcome
	written map[uint64]bool // the messages of which there was a write
	cut     bool            // a write was cut, so that its message may be another one that was sent
	runs    int             // Ledgers with this Store

	repeated int // writes under a number that was written before
}

// modelSession is one session, and what is on its way.
type modelSession struct {
	number  uint64
	fake    *conntest.Fake
	epoch   int
	have    uint64 // what Resume said
	seen    int    // messages that were written, and that check has seen
	last    uint64 // the number of the last one
	arrived int    // messages that have arrived
	acks    []uint64
	dead    bool
}

func (m *ledgerModel) open() {
	m.runs++
	m.s = newLedgerScene(m.t, m.o)
	m.s.resume = m.resume
	m.s.options.Rotate.Overlap = reconnect.Overlap(m.random.IntN(3))
	if m.random.IntN(2) == 0 {
		m.s.options.Pace = budget.Window{N: 3, Per: time.Second}
	}
	m.s.open()
}

// resume is the OnSession.
func (m *ledgerModel) resume(o *reconnect.Opening) error {
	s := &modelSession{number: o.Session, fake: m.next, epoch: m.epoch, have: m.have}
	err := m.s.ledger.ResumeEpoch(o, fmt.Sprint("epoch ", m.epoch), m.have)
	require.NoError(m.t, err)
	if m.random.IntN(6) == 0 {
		return errors.New("the login fails")
	}
	m.sessions = append(m.sessions, s)
	return nil
}

// onDone notes an outcome, which must be the only one, and right.
func (m *ledgerModel) onDone(r ledger.Settled) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, twice := m.ended[r.ID]
	require.False(m.t, twice && before != ledger.OutcomeLeft, "%d: %v after %v", r.ID, r.Outcome, before)
	m.ended[r.ID] = r.Outcome
	switch r.Outcome {
	case ledger.OutcomeAcknowledged:
		require.True(m.t, m.got[r.ID], "%d was acknowledged, and the peer has not got it", r.ID)
	case ledger.OutcomeForgotten:
		require.True(m.t, m.written[r.ID] || m.cut || m.runs > 1, "%d was never sent", r.ID)
		require.Equal(m.t, ledger.ResetReport, m.o.OnReset)
	case ledger.OutcomeExpired:
		require.GreaterOrEqual(m.t, time.Since(r.Added), m.o.Age)
	case ledger.OutcomeDropped:
		require.True(m.t, m.o.DropOldest)
	}
}

// outcomes returns the messages that have their outcome.
func (m *ledgerModel) outcomes() map[uint64]ledger.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.ended)
}

// check looks at what was written since the last step. before are the messages that had their outcome
// before this step, or were acknowledged in it.
func (m *ledgerModel) check(before map[uint64]ledger.Outcome) {
	synctest.Wait()
	for _, s := range m.sessions {
		for _, w := range s.fake.Written()[s.seen:] {
			seq, id := m.parse(string(w.Data))
			require.Greater(m.t, seq, s.last, "the order in session %d", s.number)
			require.Greater(m.t, seq, s.have, "the peer has it")
			outcome, over := before[id]
			require.False(m.t, over && outcome != ledger.OutcomeLeft, "%d was sent, though it is %v", id, outcome)
			m.written[id] = true
			if strings.HasSuffix(string(w.Data), " again") {
				m.repeated++
			}
			s.last = seq
			s.seen++
		}
	}
	require.LessOrEqual(m.t, m.s.ledger.Stats().Unacked, m.o.Messages)
	size := 0
	for _, e := range m.s.ledger.Unacked() {
		size += len(e.Data)
	}
	require.LessOrEqual(m.t, size, m.o.Bytes)
}

func (m *ledgerModel) parse(text string) (seq, id uint64) {
	n, err := fmt.Sscanf(strings.TrimSuffix(text, " again"), "%d:%d", &seq, &id)
	require.NoError(m.t, err, "%q has %d numbers", text, n)
	return seq, id
}

// arrive gives the peer up to n messages that were written by s.
func (m *ledgerModel) arrive(s *modelSession, n int) {
	written := s.fake.Written()
	for ; n > 0 && s.arrived < len(written) && s.epoch == m.epoch; n-- {
		seq, id := m.parse(string(written[s.arrived].Data))
		s.arrived++
		if seq > m.have {
			if m.whole() {
				require.Equal(m.t, m.have+1, seq, "a gap")
			}
			require.Greater(m.t, id, m.lastID, "the order of first arrivals")
			m.have, m.lastID, m.got[id] = seq, id, true
		}
		if s.acks = append(s.acks, m.have); m.single {
			s.acks[len(s.acks)-1] = seq
		}
	}
}

// whole reports whether every message reaches the peer, so that its numbers have no gaps.
func (m *ledgerModel) whole() bool {
	return m.o.Age == 0 && !m.o.DropOldest && !m.single && m.o.OnReset != ledger.ResetKeepNumbers
}

// ack lets the client read one of the acknowledgements of s.
func (m *ledgerModel) ack(s *modelSession) {
	if len(s.acks) == 0 {
		return
	}
	i := 0
	if m.single {
		i = m.random.IntN(len(s.acks))
	}
	n := s.acks[i]
	s.acks = slices.Delete(s.acks, i, i+1)
	if m.single {
		require.NoError(m.t, m.s.ledger.Acked(s.number, n))
	} else {
		require.NoError(m.t, m.s.ledger.AckedTo(s.number, n))
	}
}

// lose ends a session: some of what is on its way arrives, and the rest is lost. What the peer has
// answered may be read later.
func (m *ledgerModel) lose(s *modelSession) {
	m.arrive(s, m.random.IntN(4))
	s.dead = true
	s.fake.Fail(errLedgerLost)
}

// step does something at random.
func (m *ledgerModel) step() {
	before := m.outcomes()
	s := &modelSession{dead: true}
	if len(m.sessions) > 0 {
		s = m.sessions[len(m.sessions)-1-m.random.IntN(min(3, len(m.sessions)))]
	}
	s.dead = s.dead || s.fake.Closed()
	switch p := m.random.IntN(100); {
	case p < 20:
		m.add(1 + m.random.IntN(3))
	case p < 50 && !s.dead:
		m.arrive(s, 1+m.random.IntN(5))
	case p < 70:
		m.ack(s)
		synctest.Wait()
		before = m.outcomes()
		m.sync(before)
	case p < 75 && !s.dead:
		m.lose(s)
	case p < 78 && !s.dead:
		s.fake.FailWriteAfter(m.random.IntN(3), errLedgerLost)
		m.cut = true
	case p < 81:
		m.s.conn.Rotate(s.number, reconnect.Advice{})
	case p < 83:
		m.forget()
	case p < 84 && m.o.Store != nil:
		m.restart()
	case p < 95:
		m.answer(m.random.IntN(5) > 0)
	default:
		time.Sleep(time.Duration(m.random.Int64N(int64(10 * time.Second))))
	}
	m.check(before)
}

// sync is for an acknowledgement, after which what was acknowledged must not be written: it notes
// what was written before.
func (m *ledgerModel) sync(before map[uint64]ledger.Outcome) {
	for _, s := range m.sessions {
		for _, w := range s.fake.Written()[s.seen:] {
			_, id := m.parse(string(w.Data))
			require.NotContains(m.t, before, id)
		}
	}
}

func (m *ledgerModel) add(n int) {
	for range n {
		id, err := m.s.ledger.Add(fmt.Append(nil, m.added+1))
		if errors.Is(err, ledger.ErrFull) {
			require.False(m.t, m.o.DropOldest)
			return
		}
		require.NoError(m.t, err)
		m.added++
		require.Equal(m.t, m.added, id)
	}
}

// forget lets the peer lose its memory, and every connection with it.
func (m *ledgerModel) forget() {
	for _, s := range m.sessions {
		if !s.dead {
			s.dead = true
			s.fake.Fail(errLedgerLost)
		}
	}
	synctest.Wait()
	m.epoch++
	m.have, m.lastID = 0, 0
}

// restart ends the Conn, and begins another one with the same Store.
func (m *ledgerModel) restart() {
	m.s.close()
	m.check(m.outcomes())
	m.sessions = nil
	m.open()
}

// answer answers a dial, if there is one.
func (m *ledgerModel) answer(accept bool) bool {
	synctest.Wait()
	select {
	case a := <-m.s.dials:
		if accept {
			m.next = conntest.NewFake(nil)
			a <- m.next.Conn()
		} else {
			a <- nil
		}
		return true
	default:
		return false
	}
}

// heal lets everything succeed until nothing is unacknowledged.
func (m *ledgerModel) heal() {
	for range 1000 {
		if m.s.ledger.Stats().Unacked == 0 {
			return
		}
		m.answer(true)
		time.Sleep(time.Second)
		synctest.Wait()
		for _, s := range m.sessions {
			if s.dead = s.dead || s.fake.Closed(); s.dead {
				continue
			}
			m.arrive(s, 1000)
			for len(s.acks) > 0 {
				m.ack(s)
			}
		}
	}
	m.t.Fatalf("not all is acknowledged: %+v", m.s.ledger.Stats())
}

func newLedgerModel(t *testing.T, seed uint64) *ledgerModel {
	m := &ledgerModel{
		t: t, random: rand.New(rand.NewPCG(seed, 13)),
		got: map[uint64]bool{}, ended: map[uint64]ledger.Outcome{}, written: map[uint64]bool{},
	}
	m.o = ledger.Options{
		Messages: 1 + m.random.IntN(20), Bytes: 30 + m.random.IntN(100), OnDone: m.onDone,
		OnReset: ledger.Reset(m.random.IntN(3)),
	}
	if m.random.IntN(3) == 0 {
		m.o.DropOldest = true
	}
	m.single = m.random.IntN(3) == 0
	if m.random.IntN(3) == 0 {
		m.o.Age = 20 * time.Second
	}
	if m.random.IntN(2) == 0 {
		m.o.Store = &memoryStore{}
	}
	return m
}

// Whatever happens, each message has exactly one outcome, an acknowledged one has arrived, first
// arrivals are in order, nothing is sent that the peer has or that is settled, and the bounds hold.
func TestRandomHistoriesOfALedger(t *testing.T) {
	var total ledger.Stats
	repeated := 0
	for seed := range uint64(400) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newLedgerModel(t, seed)
				m.open()
				defer func() { m.s.close() }()
				for range 300 {
					m.step()
				}
				if seed%4 > 0 {
					m.heal()
				}
				sum(&total, m.s.ledger.Stats())
				repeated += m.repeated
				m.s.close()
				ended := m.outcomes()
				for id := uint64(1); id <= m.added; id++ {
					outcome, over := ended[id]
					require.True(t, over, "%d has no outcome", id)
					require.False(t, seed%4 > 0 && outcome == ledger.OutcomeLeft, "%d is left", id)
				}
			})
		})
	}
	t.Logf("%+v", total)
	require.Greater(t, repeated, 1000, "the histories are of use")
	require.Greater(t, total.Outcomes[ledger.OutcomeAcknowledged], uint64(5000))
	for _, outcome := range []ledger.Outcome{ledger.OutcomeExpired, ledger.OutcomeDropped, ledger.OutcomeForgotten} {
		require.Greater(t, total.Outcomes[outcome], uint64(100), "%+v", total)
	}
	require.Greater(t, total.Resets, uint64(100), "%+v", total)
}

func sum(total *ledger.Stats, s ledger.Stats) {
	total.Added += s.Added
	total.Resets += s.Resets
	for outcome, n := range s.Outcomes {
		total.Outcomes[outcome] += n
	}
}
