package ledger_test

// This file has what the tests of Ledger share: a Conn whose dials the test answers one by one.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/ledger"
)

// ledgerScene is a Ledger and its Conn, and the Dialer of that.
type ledgerScene struct {
	t       *testing.T
	ledger  *ledger.Ledger
	options reconnect.Options
	conn    *reconnect.Conn
	dials   chan chan conn.Conn
	// resume is called in OnSession; nil: nothing is.
	resume func(o *reconnect.Opening) error

	mu   sync.Mutex // guards done
	done []string   // "ID outcome", as OnDone got them
}

var errLedgerLost = errors.New("lost")

// everySecond is a policy that waits 1 s each time.
type everySecond struct{}

func (everySecond) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Second}, true
}

// withLedger runs a test in virtual time. Entries are sent as "Seq:data", and as "Seq:data again"
// if they repeat one.
func withLedger(t *testing.T, o ledger.Options, f func(t *testing.T, s *ledgerScene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newLedgerScene(t, o)
		defer s.close()
		f(t, s)
	})
}

func newLedgerScene(t *testing.T, o ledger.Options) *ledgerScene {
	t.Helper()
	s := &ledgerScene{t: t, dials: make(chan chan conn.Conn)}
	s.options.Run.Policy = everySecond{}
	s.options.Rotate.Overlap = reconnect.OverlapMix
	if o.Encode == nil {
		o.Encode = encodeEntry
	}
	also := o.OnDone
	o.OnDone = func(r ledger.Settled) {
		s.mu.Lock()
		s.done = append(s.done, fmt.Sprint(r.ID, " ", r.Outcome))
		s.mu.Unlock()
		if also != nil {
			also(r)
		}
	}
	var err error
	s.ledger, err = ledger.New(&o)
	require.NoError(t, err)
	return s
}

func encodeEntry(e ledger.Entry) (conn.Message, error) {
	if string(e.Data) == "bad" {
		return conn.Message{}, errors.New("no such message")
	}
	text := fmt.Sprintf("%d:%s", e.Seq, e.Data)
	if e.Again {
		text += " again"
	}
	return conn.TextMessage(text), nil
}

// open starts the Conn.
func (s *ledgerScene) open() {
	s.t.Helper()
	s.options.Layers = []*reconnect.Layer{s.ledger.Layer()}
	if s.options.OnSession == nil {
		s.options.OnSession = func(_ context.Context, o *reconnect.Opening) error {
			if s.resume == nil {
				return nil
			}
			return s.resume(o)
		}
	}
	var err error
	s.conn, err = reconnect.New(reconnect.DialFunc(s.dial), &s.options)
	require.NoError(s.t, err)
}

func (s *ledgerScene) dial(ctx context.Context) (conn.Conn, error) {
	answer := make(chan conn.Conn)
	select {
	case s.dials <- answer:
		if c := <-answer; c != nil {
			return c, nil
		}
		return nil, errLedgerLost
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// accept lets the next dial succeed.
func (s *ledgerScene) accept() *conntest.Fake {
	s.t.Helper()
	fake := conntest.NewFake(nil)
	s.answer(fake.Conn())
	return fake
}

// answer answers the next dial; nil refuses it.
func (s *ledgerScene) answer(c conn.Conn) {
	s.t.Helper()
	select {
	case a := <-s.dials:
		a <- c
	case <-time.After(time.Hour):
		s.t.Fatal("no dial within a virtual hour")
	}
	synctest.Wait()
}

// close closes the Conn, and waits until nothing is left of it.
func (s *ledgerScene) close() {
	if s.conn != nil {
		s.conn.Close()
		<-s.conn.Done()
	}
	synctest.Wait()
}

// add adds messages.
func (s *ledgerScene) add(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		_, err := s.ledger.Add([]byte(text))
		require.NoError(s.t, err)
	}
	synctest.Wait()
}

// outcomes returns what OnDone got since the last call.
func (s *ledgerScene) outcomes() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.done
	s.done = nil
	return done
}

// sent returns what was written to a peer, joined by commas.
func sent(peer *conntest.Fake) string {
	synctest.Wait()
	var texts []string
	for _, m := range peer.Written() {
		texts = append(texts, string(m.Data))
	}
	return strings.Join(texts, ", ")
}

// resumed returns a resume that always says the same.
func resumed(l *ledger.Ledger, have uint64, same bool) func(o *reconnect.Opening) error {
	return func(o *reconnect.Opening) error { return l.Resume(o, have, same) }
}
