package inbox_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/inbox"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// lent is an inbox, and a connection of which the reader may read.
type lent struct {
	conn.Conn
	conn.Follower
	*testing.T
	in       *inbox.Inbox
	counts   inbox.Counts
	link     link.Link
	messages chan conn.Message
	woken    chan struct{}
}

func (l *lent) Woken() bool { return true }

func (l *lent) Wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

func (l *lent) ReadWhole([]byte) (m conn.Message, more, whole bool) {
	select {
	case m = <-l.messages:
		return m, false, true
	case <-l.woken:
		return m, false, false
	}
}

func message(text string) inbox.Item {
	return inbox.Item{Message: conn.TextMessage(text), Session: 7}
}

// newLent returns an inbox whose reader has waited so often that it has asked for the turn.
func newLent(t *testing.T) *lent {
	l := &lent{T: t, messages: make(chan conn.Message), woken: make(chan struct{}, 1)}
	l.in = inbox.New(inbox.Options{Messages: 10, Bytes: 1000}, &l.counts)
	l.link.Session = 7
	l.link.Begin(l, &link.Life{}, budget.Window{})
	l.in.Begin(&l.link, false)
	for range 4 {
		require.False(t, l.in.Yield(), "the reader has not asked")
		l.waits()
		require.NoError(t, l.in.Put(message("put")))
		l.reads("put")
	}
	<-l.waits() // a wake-up that nobody has heard
	select {
	case <-l.woken: // the supervisor, which waits for a message
	default:
		t.Fatal("the reader has not asked")
	}
	return l
}

// waits asserts that there is nothing to read.
func (l *lent) waits() (empty <-chan struct{}) {
	seam, empty := l.in.Take(l.Context(), new(inbox.Item), nil)
	require.Nil(l, seam)
	require.NotNil(l, empty)
	return empty
}

// reads asserts that the next message is text.
func (l *lent) reads(text string) {
	var m inbox.Item
	seam, empty := l.in.Take(l.Context(), &m, nil)
	require.Nil(l, seam)
	require.Nil(l, empty)
	require.Equal(l, message(text), m)
}

// yields lends the turn, and runs the reader. Yield waits for end, which takes the turn back.
func (l *lent) yields(reader, end func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		require.True(l, l.in.Yield())
	}()
	synctest.Wait()
	select {
	case <-over:
		l.Fatal("Yield does not wait")
	default:
	}
	reader()
	end()
	<-over
	l.in.End()
}

// The reader is woken when the turn is free. What it reads of the link counts as received.
func TestTheReaderReadsTheLinkInItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLent(t)
		empty := l.waits()
		l.yields(func() {
			<-empty
			go func() { l.messages <- conn.TextMessage("by the link") }()
			l.reads("by the link")
			require.EqualValues(t, 5, l.counts.Messages.Load())
			require.EqualValues(t, 4*len("put")+len("by the link"), l.counts.Bytes.Load())
		}, func() {}) // the turn ends by itself
	})
}

// What the producer has put comes before what the reader reads of the link.
func TestYieldPublishesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLent(t)
		l.in.Begin(nil, true)
		for _, text := range []string{"first", "second", "third"} {
			require.NoError(t, l.in.Put(message(text)))
		}
		l.yields(func() {
			l.reads("first")
			l.reads("second")
			l.reads("third")
		}, func() {})
	})
}

// A reader that waits at the link hears of what comes to the inbox.
func TestTheReaderLeavesTheLinkForTheInbox(t *testing.T) {
	for name, put := range map[string]func(*inbox.Inbox){
		"a message": func(in *inbox.Inbox) { in.PutBeside(message("beside")) },
		"a seam":    func(in *inbox.Inbox) { in.PutSeam(&inbox.Seam{Session: 6, Lost: 1}) },
		"a mark":    func(in *inbox.Inbox) { in.PutMark(&inbox.Seam{Session: 6, Refetch: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLent(t)
				l.yields(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					read := make(chan struct{})
					var seam *inbox.Seam
					var empty <-chan struct{}
					var m inbox.Item
					go func() {
						defer close(read)
						seam, empty = l.in.Take(ctx, &m, nil)
					}()
					synctest.Wait()
					put(l.in)
					synctest.Wait()
					select {
					case <-read:
					default:
						cancel()
						t.Error("the reader still waits at the link")
					}
					<-read
					require.Nil(t, seam)
					require.NotNil(t, empty)
					require.Len(t, empty, 1, "something is in the inbox")
					seam, empty = l.in.Take(ctx, &m, nil)
					require.Nil(t, empty)
					require.True(t, seam != nil || string(m.Data) == "beside")
				}, func() {})
			})
		})
	}
}
