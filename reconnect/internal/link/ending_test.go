package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// end is a way in which a link ends. The peer does not answer a close frame.
type end struct {
	do     func(w *world, cause error)
	ended  time.Duration // when the link has ended
	closed time.Duration // when the connection is closed
	code   int           // of the close frame; 0: there is none
	reason backoff.Reason
}

// part returns an end by Part.
func part(why backoff.Reason, limit time.Duration) func(*world, error) {
	return func(w *world, cause error) { w.peer.Mute(); w.Part(cause, why, limit) }
}

// failHandling is Fail while OnMessage is in progress.
func failHandling(w *world, cause error) {
	w.Pause(Handling)
	w.Fail(cause)
}

var ends = map[string]end{
	"Cut":                      {func(w *world, cause error) { w.Cut(cause) }, 0, 0, 0, backoff.ReasonOther},
	"Fail":                     {func(w *world, cause error) { w.Fail(cause) }, time.Second, time.Second, 0, backoff.ReasonOther},
	"Fail in a handler":        {failHandling, time.Second, time.Second, 0, backoff.ReasonOther},
	"Part":                     {part(backoff.ReasonRedial, 2*time.Second), 0, 2 * time.Second, 1000, backoff.ReasonRedial},
	"Part with a limit of 0":   {part(backoff.ReasonRedial, 0), 0, 0, 1000, backoff.ReasonRedial},
	"Part without a handshake": {part(backoff.ReasonRotated, -1), 0, 0, 0, backoff.ReasonRotated},
	"EndedBy":                  {func(w *world, cause error) { w.EndedBy(cause) }, never, never, 0, backoff.ReasonOther},
}

// Only AwaitParted waits.
func TestEachEndOfALinkTakesItsTime(t *testing.T) {
	each(t, noLimit, ends, func(t *testing.T, w *world, e end) {
		e.do(w, errFirst)
		require.Zero(t, w.now())
		require.True(t, w.Lost())
		require.Equal(t, errFirst, w.Cause(nil))
		require.Equal(t, e.reason, w.Reason(nil))
		select {
		case <-w.Done():
		case <-time.After(never):
		}
		require.Equal(t, e.ended, w.now())
		w.AwaitParted(t.Context())
		require.Equal(t, e.closed, w.now())
		require.Equal(t, e.closed < never, w.peer.Closed())
		code, _, _ := w.peer.ClosedWith()
		require.Equal(t, e.code, code)
	})
}

// The reader knows more than a write that has failed. Whatever else comes second changes nothing, and sends no close frame.
func TestTheFirstCauseIsKept(t *testing.T) {
	for first, e := range ends {
		t.Run(first, func(t *testing.T) {
			each(t, noLimit, ends, func(t *testing.T, w *world, second end) {
				want := errFirst
				if strings.HasPrefix(first, "Fail") && second.ended == never {
					want = errSecond
				}
				e.do(w, errFirst)
				synctest.Wait()
				second.do(w, errSecond)
				w.Parted()
				require.Equal(t, want, w.Cause(nil))
				require.Equal(t, want, w.EndedBy(net.ErrClosed))
				require.Equal(t, e.reason, w.Reason(nil))
				code, _, _ := w.peer.ClosedWith()
				require.Equal(t, e.code, code)
			})
		})
	}
}

func TestALinkThatHasNotEndedHasNoCause(t *testing.T) {
	w := newWorld(nil, noLimit)
	w.Parted()
	w.AwaitParted(t.Context())
	require.False(t, w.Ended())
	require.False(t, w.Lost())
	require.False(t, w.Unread())
	require.Equal(t, io.EOF, w.Cause(io.EOF))
	require.Equal(t, backoff.ReasonHangup, w.Reason(io.EOF))
}

func TestAfterAFailTheReaderHasASecond(t *testing.T) {
	type row struct {
		after        time.Duration
		reader, want error
	}
	each(t, noLimit, map[string]row{
		"at once":             {0, errSecond, errSecond},
		"in time":             {time.Second - 1, errSecond, errSecond},
		"nothing of the peer": {time.Second - 1, fmt.Errorf("read: %w", net.ErrClosed), errFirst},
		"too late":            {time.Second + 1, errSecond, errFirst},
	}, func(t *testing.T, w *world, row row) {
		w.Fail(errFirst)
		time.Sleep(row.after)
		require.Equal(t, row.after > time.Second, w.Ended())
		require.Equal(t, row.want, w.EndedBy(row.reader))
		require.Equal(t, row.want, w.Cause(nil))
	})
}

// What the supervisor does after a failed write, and how long: the last act lasts for ever.
func TestAFailEndsALinkWhenWhatHasComeIsRead(t *testing.T) {
	type act struct {
		turn  Turn
		lasts time.Duration
	}
	const ms = time.Millisecond
	messages := func(n int, acts ...act) []act { return slices.Repeat(acts, n) }
	each(t, noLimit, map[string]struct {
		acts []act
		ends time.Duration
	}{
		"waits for the network":    {nil, 1000 * ms},
		"handles quick messages":   {messages(50, act{Handling, 100 * ms}), 6000 * ms},
		"handles slow messages":    {messages(10, act{Handling, 950 * ms}), 10_500 * ms},
		"a layer has slow ones":    {messages(10, act{Receiving, 950 * ms}), 10_500 * ms},
		"one is too slow":          {[]act{{Handling, 500 * ms}, {Handling, never}}, 1500 * ms},
		"the inbox is emptied":     {messages(10, act{Blocked, 950 * ms}), 10_500 * ms},
		"the inbox stays full":     {[]act{{Blocked, never}}, 1000 * ms},
		"it waits now and then":    {messages(100, act{Handling, 60 * ms}, act{Reading, 30 * ms}), 3300 * ms},
		"messages come for ever":   {messages(100, act{Handling, 900 * ms}), 30_000 * ms},
		"the inbox is always full": {messages(100, act{Blocked, 900 * ms}), 30_000 * ms},
	}, func(t *testing.T, w *world, row struct {
		acts []act
		ends time.Duration
	}) {
		var supervisor sync.WaitGroup
		defer supervisor.Wait()
		supervisor.Go(func() {
			for _, a := range row.acts {
				w.Unpause()
				if a.turn != Reading {
					w.Pause(a.turn)
				}
				time.Sleep(a.lasts)
			}
			w.Unpause()
		})
		time.Sleep(ms) // an act does not change when the link looks
		w.Fail(errFirst)
		<-w.Done()
		require.InDelta(t, row.ends, w.now(), float64(110*ms))
		require.Equal(t, errFirst, w.Cause(nil))
		w.Parted()
	})
}

// A timer would close the connection after the second, when nobody waits for it.
func TestAFailAfterTheReadersErrorLeavesNoTimer(t *testing.T) {
	inBubble(t, noLimit, func(t *testing.T, w *world) {
		w.EndedBy(errFirst)
		w.Fail(errSecond)
		w.Parted()
		time.Sleep(2 * time.Second)
		require.False(t, w.peer.Closed())
	})
}

func TestAwaitPartedEndsWithItsContextAndPartedDoesNot(t *testing.T) {
	inBubble(t, noLimit, func(t *testing.T, w *world) {
		(*Link)(nil).AwaitParted(t.Context())
		part(backoff.ReasonRedial, 2*time.Second)(w, errFirst)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w.AwaitParted(ctx)
		require.Equal(t, time.Second, w.now())
		w.Parted()
		require.Equal(t, 2*time.Second, w.now())
	})
}

// Messages that had already come may not have been read then.
func TestALinkIsUnreadIfItsReaderWasBehindWhenWeEndedIt(t *testing.T) {
	handles, blocked, lags := func(w *world) { w.Pause(Handling) }, func(w *world) { w.Pause(Blocked) }, func(w *world) { w.Lag(true) }
	reads := func(w *world) { w.Unpause(); w.Lag(false) }
	cut, parts := func(w *world) { w.Cut(errFirst) }, func(w *world) { w.Part(errFirst, backoff.ReasonOther, 0) }
	fail, later := func(w *world) { w.Fail(errFirst) }, func(*world) { time.Sleep(2 * time.Second) }
	ended := func(w *world) { w.EndedBy(errFirst) }
	free, taken := func(w *world) { w.Lead.Store(LeadFree) }, func(w *world) { w.Lead.Store(0) }
	type row struct {
		unread bool
		steps  []func(*world)
	}
	each(t, noLimit, map[string]row{
		"cut":                         {false, []func(*world){cut}},
		"cut, handles":                {true, []func(*world){handles, cut}},
		"cut, blocked":                {true, []func(*world){blocked, cut}},
		"cut, lags":                   {true, []func(*world){lags, cut}},
		"cut, has read":               {false, []func(*world){handles, lags, reads, cut}},
		"cut, free":                   {true, []func(*world){free, cut}},
		"cut, taken":                  {false, []func(*world){free, taken, cut}},
		"parted, free":                {true, []func(*world){free, parts}},
		"cut before":                  {false, []func(*world){cut, lags, cut, ended}},
		"parted":                      {false, []func(*world){parts}},
		"parted, lags":                {true, []func(*world){lags, parts}},
		"failed, handles":             {true, []func(*world){handles, fail, later}},
		"failed":                      {false, []func(*world){fail, later}},
		"lags, failed, cut":           {true, []func(*world){lags, fail, cut}},
		"failed, lags, cut":           {true, []func(*world){fail, lags, cut}},
		"failed, blocked, cut":        {true, []func(*world){fail, blocked, cut}},
		"failed, has read, cut":       {false, []func(*world){lags, fail, reads, cut}},
		"failed, lags, not cut":       {false, []func(*world){fail, lags}},
		"failed, lags after a second": {true, []func(*world){fail, lags, later}},
		"failed, has read meanwhile":  {false, []func(*world){lags, fail, reads, later}},
		"failed, the reader says why": {false, []func(*world){fail, ended, lags, later}},
		"the reader says why":         {false, []func(*world){ended, lags, cut}},
	}, func(t *testing.T, w *world, row row) {
		for _, step := range row.steps {
			step(w)
		}
		w.Parted()
		require.Equal(t, row.unread, w.Unread())
	})
}

// RFC 6455, section 7.4: a close frame may carry 1000 to 1003, 1007 to 1014 and 3000 to 4999.
func TestAPartSendsTheCodeOfItsCauseIfACloseFrameMayCarryIt(t *testing.T) {
	for code, want := range map[int]int{
		-1: 1000, 0: 1000, 999: 1000, 1000: 1000, 1001: 1001, 1003: 1003, 1004: 1000, 1006: 1000, 1007: 1007, 1008: 1008, 1014: 1014,
		1015: 1000, 2999: 1000, 3000: 3000, 3001: 3001, 4999: 4999, 5000: 1000,
	} {
		inBubble(t, noLimit, func(t *testing.T, w *world) {
			w.Part(fmt.Errorf("redial: %w", &conn.CloseError{Code: code}), backoff.ReasonRedial, time.Second)
			w.Parted()
			sent, _, _ := w.peer.ClosedWith()
			require.Equal(t, want, sent, code)
		})
	}
}

func TestTheReasonOfASessionIsThatOfItsCause(t *testing.T) {
	for want, errs := range map[backoff.Reason][]error{
		backoff.ReasonProtocol:     {&conn.ProtocolError{Err: errFirst}, fmt.Errorf("read: %w", &conn.TooBigError{Limit: 1})},
		backoff.ReasonTimeout:      {fmt.Errorf("write: %w", &conn.SlowMessageError{Op: "write"})},
		backoff.ReasonCloseRestart: {&conn.CloseError{Code: 1012}},
		backoff.ReasonHangup:       {io.EOF},
		backoff.ReasonSilent:       {&Ended{"the peer is silent", backoff.ReasonSilent}},
		backoff.ReasonOther:        {errFirst, nil},
	} {
		for _, err := range errs {
			w := newWorld(nil, noLimit)
			w.EndedBy(err)
			require.Equal(t, want, w.Reason(errors.New("late")), "%v", err)
		}
	}
}

// starter is a connection that can be read after our close frame.
type starter struct {
	conn.Conn
	code   int // of the close frame, as the next one
	reason string
	err    error
}

func (s *starter) StartClose(code int, reason string) error {
	s.code, s.reason = code, reason
	return s.err
}

// The supervisor reads on, and the session is unread unless it reads to the answer of the peer. The first cause stays.
func TestRetiredLinkIsReadToTheAnswer(t *testing.T) {
	answer := func(err error) func(*world) {
		return func(w *world) {
			time.Sleep(time.Second / 2)
			w.EndedBy(fmt.Errorf("read: %w", err))
			w.End()
		}
	}
	pause := func(why Turn) func(*world) { return func(w *world) { w.Pause(why) } }
	unread := func(err error) func(*world) {
		return func(w *world) {
			w.Pause(Handling)
			answer(err)(w)
		}
	}
	waits := func(w *world) { // for room, until the link has ended
		w.Pause(Handling)
		<-w.Done()
		w.Unpause()
	}
	frame := func(code int) error { return &conn.CloseError{Code: code} }
	type row struct {
		start  error // of StartClose
		do     func(*world)
		cause  error // of Retire
		code   int   // of its close frame
		unread bool
		cross  bool
		took   time.Duration
	}
	const half = time.Second / 2
	away, echo := &conn.CloseError{Code: 1001}, &conn.CloseError{Code: 1000, Reason: "rotated"}
	each(t, noLimit, map[string]row{
		"a close frame":         {nil, answer(frame(1000)), errFirst, 1000, false, false, half},
		"end of stream":         {nil, answer(io.EOF), errFirst, 1000, false, false, half},
		"reset":                 {nil, answer(errSecond), errFirst, 1000, true, false, half},
		"unread, answer":        {nil, unread(frame(1001)), away, 1001, false, false, half},
		"unread, echo":          {nil, unread(echo), errFirst, 1000, false, false, half},
		"unread, no reason":     {nil, unread(frame(1000)), errFirst, 1000, false, true, half},
		"unread, another code":  {nil, unread(frame(1001)), errFirst, 1000, true, false, half},
		"unread, end of stream": {nil, unread(io.EOF), errFirst, 1000, true, false, half},
		"no answer":             {nil, func(*world) {}, errFirst, 1000, false, false, 2 * time.Second},
		"no answer, handles":    {nil, pause(Handling), errFirst, 1000, true, false, 2 * time.Second},
		"no answer, waits":      {nil, waits, errFirst, 1000, true, false, 2 * time.Second},
		"nobody reads":          {nil, pause(Blocked), errFirst, 1000, true, false, time.Second},
		"not sent":              {errSecond, func(*world) {}, errFirst, 1000, false, false, 0},
		"not sent, handles":     {errSecond, pause(Handling), errFirst, 1000, true, false, 0},
	}, func(t *testing.T, w *world, row row) {
		c := &starter{Conn: w.peer, err: row.start}
		w.Begin(c, w.Life(), noLimit)
		go row.do(w)
		synctest.Wait()
		w.Retire(row.cause, backoff.ReasonRotated, 2*time.Second)
		require.True(t, w.Lost())
		<-w.Done()
		w.AwaitParted(t.Context())
		require.Equal(t, row.took, w.now())
		require.Equal(t, row.unread, w.Unread())
		require.Equal(t, row.cross, w.Crossed())
		require.Equal(t, row.code, c.code)
		require.Equal(t, "rotated", c.reason)
		require.Equal(t, row.cause, w.Cause(nil))
		require.Equal(t, backoff.ReasonRotated, w.Reason(nil))
		require.True(t, w.peer.Closed())
	})
}

func TestLinkBehindAtRetireIsReadAfterAnswer(t *testing.T) {
	inBubble(t, noLimit, func(t *testing.T, w *world) {
		w.Begin(&starter{Conn: w.peer}, w.Life(), noLimit)
		w.Pause(Handling)
		w.Retire(errFirst, backoff.ReasonRotated, time.Second)
		w.Unpause()
		echo := &conn.CloseError{Code: 1000, Reason: "rotated"}
		w.EndedBy(echo)
		w.Cut(echo) // as the supervisor does when it has read the end
		w.AwaitParted(t.Context())
		require.False(t, w.Unread())
	})
}

// hungUp is a connection that the peer has ended, which its reader has not noticed yet.
type hungUp struct {
	starter
	conn.Transport
}

func (*hungUp) HungUp() bool { return true }

// The reader gets the end half a second after the link was retired, or does not get it.
func TestLinkIsUnreadIfPeerHungUpBefore(t *testing.T) {
	for name, row := range map[string]struct {
		start error // of StartClose
		limit time.Duration
		reads bool
	}{
		"Retire":           {nil, time.Minute, true},
		"Retire, not sent": {errSecond, time.Minute, true},
		"Retire, not read": {nil, time.Second, false},
		"Part":             {nil, -1, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, noLimit, func(t *testing.T, w *world) {
				w.Begin(&hungUp{starter{Conn: w.peer, err: row.start}, nil}, w.Life(), noLimit)
				w.Retire(errFirst, backoff.ReasonRotated, row.limit)
				if row.reads {
					time.Sleep(time.Second / 2)
					require.ErrorIs(t, w.EndedBy(fmt.Errorf("read: %w", io.EOF)), errFirst)
					w.Parted()
				}
				w.AwaitParted(t.Context())
				require.True(t, w.Unread())
			})
		})
	}
}

// A write that fails because we have sent a close frame, such as that of a keep-alive, does not end the
// session before the peer has answered.
func TestWriteAfterCloseFrameEndsNothing(t *testing.T) {
	notWritten := fmt.Errorf("write: not written: %w", net.ErrClosed)
	goodbye := func(w *world) {
		go w.Goodbye(context.Background()) // returns after the link has ended
	}
	retire := func(w *world) { w.Retire(errFirst, backoff.ReasonRotated, 2*time.Second) }
	type row struct {
		part  func(*world)
		why   Turn
		err   error
		ended bool
	}
	each(t, noLimit, map[string]row{
		"Retire":                {retire, Reading, notWritten, false},
		"Retire, handles":       {retire, Handling, notWritten, false},
		"Goodbye":               {goodbye, Reading, notWritten, false},
		"Goodbye, handles":      {goodbye, Handling, notWritten, false},
		"Goodbye, broken write": {goodbye, Reading, errSecond, true},
	}, func(t *testing.T, w *world, row row) {
		w.Begin(&starter{Conn: w.peer}, w.Life(), noLimit)
		w.Pause(row.why)
		row.part(w)
		synctest.Wait()
		w.Fail(row.err)
		require.False(t, w.Ended())
		time.Sleep(lastWords + time.Millisecond)
		require.Equal(t, row.ended, w.Ended())
		w.Cut(errSecond)
		w.AwaitParted(t.Context())
	})
}

// A connection that cannot be read after a close frame is parted from.
func TestRetireIsPartWhereNothingCanBeReadAfterwards(t *testing.T) {
	inBubble(t, noLimit, func(t *testing.T, w *world) {
		w.Retire(errFirst, backoff.ReasonRotated, time.Second)
		require.True(t, w.Ended())
		w.Parted()
		code, _, _ := w.peer.ClosedWith()
		require.Equal(t, 1000, code)
	})
}
