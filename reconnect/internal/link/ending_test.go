package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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

var ends = map[string]end{
	"Cut":                      {func(w *world, cause error) { w.Cut(cause) }, 0, 0, 0, backoff.ReasonOther},
	"Fail":                     {func(w *world, cause error) { w.Fail(cause) }, time.Second, time.Second, 0, backoff.ReasonOther},
	"Fail while nobody reads":  {func(w *world, cause error) { w.Pause(Handling); w.Fail(cause) }, 0, 0, 0, backoff.ReasonOther},
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
				if first == "Fail" && second.ended == never {
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
		"cut before":                  {false, []func(*world){cut, lags, cut, ended}},
		"parted":                      {false, []func(*world){parts}},
		"parted, lags":                {true, []func(*world){lags, parts}},
		"failed, handles":             {true, []func(*world){handles, fail}},
		"failed":                      {false, []func(*world){fail, later}},
		"lags, failed, cut":           {true, []func(*world){lags, fail, cut}},
		"failed, lags, cut":           {true, []func(*world){fail, lags, cut}},
		"failed, blocked, cut":        {true, []func(*world){fail, blocked, cut}},
		"failed, has read, cut":       {false, []func(*world){lags, fail, reads, cut}},
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
