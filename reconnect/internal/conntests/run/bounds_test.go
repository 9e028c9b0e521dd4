package run_test

import (
	"context"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// bound is a limit that an option sets, or that its documentation names.
type bound struct {
	name string
	n    int

	// within uses k of what is bounded, and reports whether that was within the bound.
	within func(t *testing.T, s *scene.Scene, n, k int) bool
}

var bounds = []bound{
	{"Inbox.Messages", 3, func(t *testing.T, s *scene.Scene, n, k int) bool {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Messages: n, Overflow: reconnect.InboxDisconnect})
		scene.Deliver(peer, 1, k)
		return c.State() == reconnect.StateReady
	}},
	{"Inbox.Messages by default", 64, func(t *testing.T, s *scene.Scene, _, k int) bool {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Overflow: reconnect.InboxDisconnect})
		scene.Deliver(peer, 1, k)
		return c.State() == reconnect.StateReady
	}},
	{"Inbox.Messages with InboxDropOldest", 3, func(t *testing.T, s *scene.Scene, n, k int) bool {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Messages: n, Overflow: reconnect.InboxDropOldest})
		scene.Deliver(peer, 1, k)
		_, err := c.Read(t.Context(), nil)
		return err == nil
	}},
	{"Inbox.Messages with InboxBlock", 3, func(t *testing.T, s *scene.Scene, n, k int) bool {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Messages: n})
		scene.Deliver(peer, 1, k)
		return c.Stats().Received == uint64(k)
	}},
	{"Inbox.Bytes", 9, func(t *testing.T, s *scene.Scene, n, k int) bool {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Bytes: n + 1, Overflow: reconnect.InboxDisconnect})
		peer.Deliver(scene.Blob(k), scene.Blob(1))
		synctest.Wait()
		return c.State() == reconnect.StateReady
	}},
	{"Inbox.Bytes with InboxBlock, at which there is no room", 9, func(t *testing.T, s *scene.Scene, n, k int) bool {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Bytes: n + 1})
		peer.Deliver(scene.Blob(k), scene.Blob(1))
		synctest.Wait()
		return c.Stats().Received == 2
	}},
	{"Inbox.Bytes by default, at which there is no room", 16<<20 - 1,
		func(t *testing.T, s *scene.Scene, _, k int) bool {
			c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Overflow: reconnect.InboxDisconnect})
			peer.Deliver(scene.Blob(k), scene.Blob(1))
			synctest.Wait()
			return c.State() == reconnect.StateReady
		}},
	{"Inbox.Bytes with InboxDropOldest", 10, func(t *testing.T, s *scene.Scene, n, k int) bool {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Bytes: n, Overflow: reconnect.InboxDropOldest})
		peer.Deliver(scene.Blob(3), scene.Blob(k-3))
		synctest.Wait()
		_, err := c.Read(t.Context(), nil)
		return err == nil
	}},
	{"Outbox.Messages", 3, func(t *testing.T, s *scene.Scene, n, k int) bool {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = n
		c := s.Open(o)
		for range k - 1 {
			scene.Queue(t, c, "a")
		}
		return c.Send(scene.Out("b")) == nil
	}},
	{"Outbox.Messages with OutboxDropOldest", 3, func(t *testing.T, s *scene.Scene, n, k int) bool {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Messages, o.Outbox.Overflow = n, reconnect.OutboxDropOldest
		c := s.Open(o)
		for range k {
			scene.Queue(t, c, "a")
		}
		synctest.Wait()
		return len(receipts.All()) == 0
	}},
	{"Outbox.Messages by default", 1024, func(t *testing.T, s *scene.Scene, _, k int) bool {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		for range k - 1 {
			scene.Queue(t, c, "a")
		}
		return c.Send(scene.Out("b")) == nil
	}},
	{"Outbox.Bytes", 5, func(t *testing.T, s *scene.Scene, n, k int) bool {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Bytes = n
		return s.Open(o).Send(scene.Out(strings.Repeat("x", k))) == nil
	}},
	{"Outbox.Bytes, of two messages", 5, func(t *testing.T, s *scene.Scene, n, k int) bool {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Bytes = n
		c := s.Open(o)
		scene.Queue(t, c, "ab")
		return c.Send(scene.Out(strings.Repeat("x", k-2))) == nil
	}},
	{"Outbox.Bytes by default", 16 << 20, func(t *testing.T, s *scene.Scene, _, k int) bool {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		return s.Open(o).Send(scene.Out(strings.Repeat("x", k))) == nil
	}},
	{"receipts that wait for OnReceipt", 3, func(t *testing.T, s *scene.Scene, n, k int) bool {
		o, _ := scene.Sending(reconnect.WhenDownFail)
		o.Outbox.Messages = n
		o.Outbox.OnReceipt = func(ctx context.Context, _ reconnect.Receipt) { <-ctx.Done() }
		c := s.Open(o)
		s.WantDial().Accept()
		scene.Queue(t, c, "its receipt is given")
		synctest.Wait()
		for range k - 1 {
			scene.Queue(t, c, "a")
			synctest.Wait()
		}
		return c.Send(scene.Out("b")) == nil
	}},
	{"Pace.N", 3, func(t *testing.T, s *scene.Scene, n, k int) bool {
		o, _ := scene.Sending(reconnect.WhenDownFail)
		o.Liveness.Limit = -1
		o.Pace = budget.Window{N: n, Per: time.Second}
		c := s.Open(o)
		peer := s.WantDial().Accept()
		for range k {
			scene.Queue(t, c, "a")
		}
		synctest.Wait()
		return len(peer.Written()) == k
	}},
	{"rotations in a row", 10, rotationsInARow(reconnect.OverlapHold)},
	{"rotations in a row, with OverlapBreakFirst", 10, rotationsInARow(reconnect.OverlapBreakFirst)},
	// With one more message, the limit is reached and the old session is cut.
	{"messages that OverlapHold holds, one for each 64 bytes", 3, func(_ *testing.T, s *scene.Scene, n, k int) bool {
		return holds(s, reconnect.Inbox{Messages: 1, Bytes: 64 * (n + 1)}, slices.Repeat([]int{1}, k))
	}},
	{"messages that OverlapHold holds, if Inbox.Messages is more", 3,
		func(_ *testing.T, s *scene.Scene, n, k int) bool {
			return holds(s, reconnect.Inbox{Messages: n + 1, Bytes: 64 * n}, slices.Repeat([]int{1}, k))
		}},
	{"bytes that OverlapHold holds", 99, func(_ *testing.T, s *scene.Scene, n, k int) bool {
		return holds(s, reconnect.Inbox{Bytes: n + 1}, []int{k - 50, 50})
	}},
	{"backoff.Limit", 4, func(t *testing.T, s *scene.Scene, n, k int) bool {
		o := scene.WithPolicy(backoff.Limit(scene.Every(time.Second), n, 0))
		c := s.Open(&o)
		for range k {
			s.WantDial().Refuse(scene.ErrLost)
		}
		select {
		case <-s.Dials: // the dial after k waits
			return true
		case <-c.Done():
			return false
		}
	}},
	{"Budget of logins", 3, func(t *testing.T, s *scene.Scene, n, k int) bool {
		o := scene.WithPolicy(scene.Every(time.Second))
		logins, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: n, Per: time.Hour}}})
		require.NoError(t, err)
		o.Run.Logins = logins
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error { return op.Write(scene.Text("login")) }
		s.Open(&o)
		for range k - 1 {
			peer := s.WantDial().Accept()
			peer.Fail(scene.ErrLost)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		select {
		case <-s.Dials:
			return true
		default:
			return false
		}
	}},
}

// Promise 10: each bound holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	for _, b := range bounds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
					require.Equal(t, k <= b.n, b.within(t, s, b.n, k), "%d of %d", k, b.n)
				})
			}
		})
	}
}

// rotationsInARow returns whether k rotations begin without a pause.
func rotationsInARow(overlap reconnect.Overlap) func(t *testing.T, s *scene.Scene, _, k int) bool {
	return func(_ *testing.T, s *scene.Scene, _, k int) bool {
		s.Fake = scene.Alive
		rotation := reconnect.Rotation{Drain: time.Millisecond, Overlap: overlap}
		c := s.Open(&reconnect.Options{Rotate: rotation})
		s.WantDial().Accept()
		for range k {
			if !rotatesNow(s, c) {
				return false
			}
		}
		return true
	}
}

// rotatesNow requests a rotation, reports whether it begins without a pause, and waits until it is over.
func rotatesNow(s *scene.Scene, c *reconnect.Conn) bool {
	c.Rotate(c.Status().Session, reconnect.Advice{})
	synctest.Wait()
	select {
	case d := <-s.Dials:
		d.Accept()
	default:
		return false
	}
	for time.Sleep(time.Microsecond); c.Status().Rotating; {
		time.Sleep(time.Microsecond)
	}
	return true
}

// holds reports whether OverlapHold holds messages of these sizes without cutting the old session.
func holds(s *scene.Scene, in reconnect.Inbox, sizes []int) bool {
	o := scene.Rotating(reconnect.OverlapHold)
	o.Inbox = in
	c := s.Open(&o)
	old := s.WantDial().Accept()
	c.Rotate(1, reconnect.Advice{})
	next := s.WantDial().Accept()
	for _, size := range sizes {
		next.Deliver(scene.Blob(size))
		synctest.Wait()
	}
	return !old.Closed()
}

// timeBound is a time that an option sets, or that its documentation names.
type timeBound struct {
	name string
	n    time.Duration
	at   bool // the event has happened at n itself

	// happened waits for k, and reports whether the event has happened.
	happened func(t *testing.T, s *scene.Scene, n, k time.Duration) bool
}

var timeBounds = []timeBound{
	{"Outbox.Age", 5 * time.Second, true, func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Age = n
		scene.Queue(t, s.Open(o), "a")
		after(k)
		return len(receipts.All()) == 1
	}},
	{"Outbox.Age by default", 5 * time.Minute, true, func(t *testing.T, s *scene.Scene, _, k time.Duration) bool {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		scene.Queue(t, s.Open(o), "a")
		after(k)
		return len(receipts.All()) == 1
	}},
	{"Outgoing.Deadline", time.Second, true, func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("a"), Deadline: time.Now().Add(n)}))
		after(k)
		return len(receipts.All()) == 1
	}},
	{"OpenTimeout", 3 * time.Second, true, func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
		ended := false
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.OpenTimeout = n
		o.OnSession = func(ctx context.Context, _ *reconnect.Opening) error {
			<-ctx.Done()
			ended = true
			return context.Cause(ctx)
		}
		s.Open(&o)
		s.WantDial().Accept()
		after(k)
		return ended
	}},
	{"OpenTimeout by default", 30 * time.Second, true, func(t *testing.T, s *scene.Scene, _, k time.Duration) bool {
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.OnSession = func(ctx context.Context, _ *reconnect.Opening) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		after(k)
		return c.State() == reconnect.StateWaiting
	}},
	{"Liveness.Limit", 9 * time.Second, true, func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.Limit = n
		c := s.Open(&o)
		s.WantDial().Accept().Mute()
		after(k)
		return c.State() == reconnect.StateWaiting
	}},
	{"Liveness.Limit by default", 30 * time.Second, true, func(_ *testing.T, s *scene.Scene, _, k time.Duration) bool {
		return givesUp(s, 0, 1, k)
	}},
	{"Liveness.Limit, 8 times after many silent sessions", 24 * time.Second, true,
		func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool { return givesUp(s, n/8, 6, k) }},
	{"first probe, at a third of Liveness.Limit", 3 * time.Second, true,
		func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool { return probes(s, 3*n, k) == 1 }},
	{"second probe, at two thirds of Liveness.Limit", 6 * time.Second, true,
		func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool { return probes(s, n/2*3, k) == 2 }},
	{"Liveness.ProbeEvery", 2 * time.Second, true, func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.ProbeEvery = n
		s.Open(&o)
		peer := s.WantDial().Accept()
		after(k)
		return peer.Pings() == 1
	}},
	{"Stall.Limit", 10 * time.Second, true, func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
		o := scene.StallOptions(n)
		c := s.Open(&o)
		s.WantDial().Accept()
		after(k)
		return c.State() != reconnect.StateReady
	}},
	{"Stall.Limit, 32 times after many sessions without a message", 32 * time.Second, true,
		func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool {
			o := scene.StallOptions(n / 32)
			c := s.Open(&o)
			for range 8 {
				s.WantDial().Accept()
			}
			after(k)
			return c.State() != reconnect.StateReady
		}},
	{"KeepAlive.Every", 8 * time.Second, true, func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.KeepAlive = reconnect.KeepAlive{Every: n, Message: func() conn.Message { return scene.Text("idle") }}
		s.Open(&o)
		peer := s.WantDial().Accept()
		after(k)
		return scene.Written(peer) == "idle"
	}},
	{"Pace.Per", 7 * time.Second, true, func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
		o, _ := scene.Sending(reconnect.WhenDownFail)
		o.Liveness.Limit = -1
		o.Pace = budget.Window{N: 2, Per: n}
		c := s.Open(o)
		peer := s.WantDial().Accept()
		scene.Queue(t, c, "a", "b", "c")
		after(k)
		return len(peer.Written()) == 3
	}},
	{"Rotate.Drain", 2 * time.Second, true, func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool {
		return drains(s, reconnect.OverlapHold, n, k)
	}},
	{"Rotate.Drain by default", 5 * time.Second, true, func(_ *testing.T, s *scene.Scene, _, k time.Duration) bool {
		return drains(s, reconnect.OverlapHold, 0, k)
	}},
	{"Rotate.Drain with OverlapMix", 2 * time.Second, true,
		func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool {
			return drains(s, reconnect.OverlapMix, n, k)
		}},
	{"Rotate.Drain with OverlapBreakFirst", 2 * time.Second, true,
		func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
			c := s.Open(&reconnect.Options{Rotate: reconnect.Rotation{Drain: n, Overlap: reconnect.OverlapBreakFirst}})
			s.WantDial().Accept()
			c.Rotate(1, reconnect.Advice{})
			s.WantDial()
			wrote := scene.StartWrite(t.Context(), c, "a")
			after(k)
			return len(wrote) == 1
		}},
	{"rotation after ten in a row", 2 * time.Second, true, func(t *testing.T, s *scene.Scene, _, k time.Duration) bool {
		s.Fake = scene.Alive
		c := s.Open(&reconnect.Options{Rotate: reconnect.Rotation{Drain: time.Millisecond}})
		s.WantDial().Accept()
		first := time.Now()
		for range 10 {
			require.True(t, rotatesNow(s, c))
		}
		c.Rotate(c.Status().Session, reconnect.Advice{})
		after(k - time.Since(first))
		select {
		case <-s.Dials:
			return true
		default:
			return false
		}
	}},
	{"Rotate.Allowed is not asked from 0.99 of Rotate.After on", 99 * time.Second, true,
		func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool {
			o := scene.Rotating(reconnect.OverlapHold)
			o.Rotate.After = n / 99 * 100
			o.Rotate.Allowed = func(time.Time) bool { return false }
			o.Run.Rand = constant(0)
			c := s.Open(&o)
			s.WantDial().Accept()
			after(k)
			return c.Status().Rotating
		}},
	{"CloseTimeout", 3 * time.Second, true, func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool {
		return goodbyeEnds(s, n, k)
	}},
	{"CloseTimeout by default", 5 * time.Second, true, func(_ *testing.T, s *scene.Scene, _, k time.Duration) bool {
		return goodbyeEnds(s, 0, k)
	}},
	{"CloseTimeout, of Redial", 300 * time.Millisecond, true,
		func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool {
			return redials(s, n, k)
		}},
	{"CloseTimeout, of Redial at most", time.Second, true, func(_ *testing.T, s *scene.Scene, _, k time.Duration) bool {
		return redials(s, 3*time.Second, k)
	}},
	{"CloseTimeout, of a rotation", 300 * time.Millisecond, true,
		func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool { return rotates(s, n, k) }},
	{"CloseTimeout, of a rotation at most", time.Second, true,
		func(_ *testing.T, s *scene.Scene, _, k time.Duration) bool {
			return rotates(s, 3*time.Second, k)
		}},
	{"CloseTimeout if negative, of Shutdown", 5 * time.Second, true,
		func(_ *testing.T, s *scene.Scene, _, k time.Duration) bool { return goodbyeEnds(s, -1, k) }},
	{"Trace.SlowHandler", 3 * time.Second, true, func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
		return reportsSlow(t, s, 3*n, k)
	}},
	{"Trace.SlowHandler by default", 10 * time.Second, true,
		func(t *testing.T, s *scene.Scene, _, k time.Duration) bool {
			return reportsSlow(t, s, 0, k)
		}},
	{"Trace.SlowHandler if Liveness.Limit is negative", 5 * time.Second, true,
		func(t *testing.T, s *scene.Scene, _, k time.Duration) bool { return reportsSlow(t, s, -1, k) }},
	{"Trace.SlowHandler of Run", 5 * time.Second, true, func(t *testing.T, s *scene.Scene, _, k time.Duration) bool {
		reported := false
		o := &reconnect.RunOptions{
			Classify: func(error) backoff.Verdict {
				time.Sleep(k)
				synctest.Wait()
				return backoff.Verdict{Class: backoff.ClassStop}
			},
			Trace: &reconnect.Trace{SlowHandler: func(reconnect.SlowHandler) { reported = true }},
		}
		refused := func(context.Context) (io.Closer, error) { return nil, scene.ErrLost }
		serve := func(context.Context, io.Closer, *reconnect.Session) error { return nil }
		require.ErrorIs(t, reconnect.Run(t.Context(), refused, serve, o), scene.ErrLost)
		return reported
	}},
	{"Trace.Overdue, of a call that SlowHandler has reported", 6 * time.Second, true,
		func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
			overdue, _ := holdsUp(t, s, reconnect.Options{Liveness: reconnect.Liveness{Limit: n / 2 * 3}})
			after(k)
			return overdue.Load() == 1
		}},
	{"Trace.Overdue, of a call whose context has ended", 5 * time.Second, true,
		func(t *testing.T, s *scene.Scene, _, k time.Duration) bool {
			overdue, c := holdsUp(t, s, reconnect.Options{})
			c.Close()
			after(k)
			return overdue.Load() == 1
		}},
	{"Trace.Overdue, of a reader at the latest", 12 * time.Second, true,
		func(t *testing.T, s *scene.Scene, n, k time.Duration) bool {
			s.Fake = scene.Alive
			var overdue atomic.Int32
			o := scene.WithPolicy(scene.Every(time.Hour))
			o.Inbox.Messages = 1
			o.Liveness.Limit = n / 4 * 3
			o.Run.Trace = &reconnect.Trace{Overdue: func(reconnect.Overdue) { overdue.Add(1) }}
			s.Open(&o)
			scene.Deliver(s.WantDial().Accept(), 1, 1)
			after(k)
			return overdue.Load() == 1
		}},
	{"backoff.RetryAfter", time.Minute, true, func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool {
		return dialsAgain(s, n, k)
	}},
	{"backoff.MaxRetryAfter", backoff.MaxRetryAfter, true, func(_ *testing.T, s *scene.Scene, n, k time.Duration) bool {
		return dialsAgain(s, 10*n, k)
	}},
	{"Run.StableAfter", 5 * time.Second, true, stableAfter},
	{"Run.StableAfter by default", 10 * time.Second, true,
		func(t *testing.T, s *scene.Scene, _, k time.Duration) bool { return stableAfter(t, s, 0, k) }},
	{"Run.StableAfter if negative", 2 * time.Second, true,
		func(t *testing.T, s *scene.Scene, _, k time.Duration) bool { return stableAfter(t, s, -1, k) }},
}

// Promises 3, 4, 8 and 10: what happens after a time does not happen a nanosecond before that.
func TestTimesAreExact(t *testing.T) {
	for _, b := range timeBounds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
					want := k > b.n || k == b.n && b.at
					require.Equal(t, want, b.happened(t, s, b.n, k), "after %v, and the option is %v", k, b.n)
				})
			}
		})
	}
}

// after sleeps for k, and waits for what happens then.
func after(k time.Duration) {
	time.Sleep(k)
	synctest.Wait()
}

// goodbyeEnds reports whether Shutdown has ended after k, although the peer does not answer.
func goodbyeEnds(s *scene.Scene, limit, k time.Duration) bool {
	s.Fake = scene.Alive
	c := s.Open(&reconnect.Options{CloseTimeout: limit})
	s.WantDial().Accept().Mute()
	synctest.Wait()
	go c.Shutdown(context.Background()) // ends with the Conn
	time.Sleep(k)
	synctest.Wait()
	return c.State() == reconnect.StateClosed
}

// redials reports whether k after a call of Redial the connection is cut, although the peer does not answer the
// close.
func redials(s *scene.Scene, limit, k time.Duration) bool {
	s.Fake = scene.Alive
	c := s.Open(&reconnect.Options{CloseTimeout: limit})
	peer := s.WantDial().Accept()
	peer.Mute()
	c.Redial(1, scene.ErrLost)
	after(k)
	return peer.Closed()
}

// rotates reports whether k after the end of Drain the old session is cut, although its peer does not answer the
// close.
func rotates(s *scene.Scene, limit, k time.Duration) bool {
	s.Fake = scene.Alive
	const drain = time.Second
	c := s.Open(&reconnect.Options{CloseTimeout: limit, Rotate: reconnect.Rotation{Drain: drain}})
	old := s.WantDial().Accept()
	old.Mute()
	c.Rotate(1, reconnect.Advice{})
	s.WantDial().Accept()
	after(drain + k)
	return old.Closed()
}

// drains reports whether the old session of a rotation is closed k after the next one is ready.
func drains(s *scene.Scene, overlap reconnect.Overlap, drain, k time.Duration) bool {
	s.Fake = scene.Alive
	c := s.Open(&reconnect.Options{Rotate: reconnect.Rotation{Overlap: overlap, Drain: drain}})
	old := s.WantDial().Accept()
	c.Rotate(1, reconnect.Advice{})
	s.WantDial().Accept()
	after(k)
	_, _, closed := old.ClosedWith()
	return closed
}

// givesUp reports whether the last of several silent sessions has ended k after it was ready.
func givesUp(s *scene.Scene, limit time.Duration, sessions int, k time.Duration) bool {
	s.Fake = scene.Alive
	o := scene.WithPolicy(scene.Every(0))
	o.Liveness.Limit = limit
	c := s.Open(&o)
	for range sessions {
		scene.AcceptLate(s.WantDial(), -1)
	}
	after(k)
	return c.State() != reconnect.StateReady
}

// probes returns how often a silent peer is probed within k.
func probes(s *scene.Scene, limit, k time.Duration) int {
	s.Fake = scene.Alive
	o := scene.WithPolicy(scene.Every(time.Hour))
	o.Liveness.Limit = limit
	s.Open(&o)
	peer := s.WantDial().Accept()
	peer.Mute()
	after(k)
	return peer.Pings()
}

// reportsSlow reports whether SlowHandler is called within k after a call of OnMessage that does not return.
func reportsSlow(t *testing.T, s *scene.Scene, limit, k time.Duration) bool {
	reported := false
	o := reconnect.Options{Liveness: reconnect.Liveness{Limit: limit}}
	o.Run.Trace = &reconnect.Trace{SlowHandler: func(reconnect.SlowHandler) { reported = true }}
	holdsUp(t, s, o)
	after(k)
	return reported
}

// holdsUp opens a Conn whose OnMessage has been called and does not return, and counts the calls of Overdue.
func holdsUp(t *testing.T, s *scene.Scene, o reconnect.Options) (overdue *atomic.Int32, c *reconnect.Conn) {
	release := make(chan struct{})
	overdue = new(atomic.Int32)
	o.OnMessage = func(context.Context, reconnect.Message) { <-release }
	counts := &reconnect.Trace{Overdue: func(reconnect.Overdue) { overdue.Add(1) }}
	o.Run.Trace = reconnect.JoinTraces(o.Run.Trace, counts)
	c = s.Open(&o)
	t.Cleanup(func() { close(release) })
	scene.Deliver(s.WantDial().Accept(), 1, 1)
	return overdue, c
}

// dialsAgain reports whether there was another dial after k, although the server has asked for a wait.
func dialsAgain(s *scene.Scene, wait, k time.Duration) bool {
	o := scene.WithPolicy(scene.Every(0))
	s.Open(&o)
	s.WantDial().Refuse(backoff.RetryAfter(scene.ErrLost, wait))
	time.Sleep(k)
	synctest.Wait()
	select {
	case <-s.Dials:
		return true
	default:
		return false
	}
}

// stableAfter reports whether a session that was ready for k was stable.
func stableAfter(_ *testing.T, s *scene.Scene, option, k time.Duration) (stable bool) {
	o := scene.WithPolicy(scene.Every(time.Second))
	o.Run.StableAfter = option
	o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { stable = e.Stable }}
	s.Open(&o)
	peer := s.WantDial().Accept()
	time.Sleep(k)
	peer.Fail(scene.ErrLost)
	synctest.Wait()
	return stable
}

// A number without a unit is an error, and a millisecond is not.
func TestShortestIntervalsAreExact(t *testing.T) {
	message := func() conn.Message { return scene.Text("idle") }
	for name, set := range map[string]func(o *reconnect.Options, d time.Duration){
		"Rotate.After":        func(o *reconnect.Options, d time.Duration) { o.Rotate.After = d },
		"Liveness.ProbeEvery": func(o *reconnect.Options, d time.Duration) { o.Liveness.ProbeEvery = d },
		"KeepAlive.Every": func(o *reconnect.Options, d time.Duration) {
			o.KeepAlive = reconnect.KeepAlive{Every: d, Message: message}
		},
	} {
		for d := time.Millisecond - 1; d <= time.Millisecond+1; d++ {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := new(reconnect.Options)
				set(o, d)
				c, err := reconnect.New(s, o)
				require.Equal(t, d >= time.Millisecond, err == nil, "%s is %v", name, d)
				if err == nil {
					scene.CloseAndWait(c)
				}
			})
		}
	}
}

// constant is a source that always draws the same number.
type constant uint64

func (c constant) Uint64() uint64 { return uint64(c) }

// drawn are the options that are the end of a range from which a time is drawn.
var drawn = []struct {
	option    string
	low, high time.Duration // the time is drawn from [low, high)
	draws     func(s *scene.Scene, n time.Duration, source rand.Source) time.Duration
}{
	{"Rotate.After", 54 * time.Minute, time.Hour,
		func(s *scene.Scene, n time.Duration, source rand.Source) time.Duration {
			return replacedAfter(s, reconnect.Rotation{After: n}, source)
		}},
	{"Rotate.After with Allowed", 90 * time.Minute, 98 * time.Minute,
		func(s *scene.Scene, n time.Duration, source rand.Source) time.Duration {
			r := reconnect.Rotation{After: n / 98 * 100, Allowed: func(time.Time) bool { return true }}
			return replacedAfter(s, r, source)
		}},
	{"Run.StartSpread", 0, time.Minute, func(s *scene.Scene, n time.Duration, source rand.Source) time.Duration {
		s.Open(&reconnect.Options{Run: reconnect.RunOptions{StartSpread: n, Rand: source}})
		return s.WantDial().At
	}},
	{"Advice.Spread", 0, time.Minute, func(s *scene.Scene, n time.Duration, source rand.Source) time.Duration {
		return rotatedAfter(s, reconnect.Advice{Spread: n}, source)
	}},
	{"Advice.Wait and Spread", 40 * time.Minute, backoff.MaxRetryAfter,
		func(s *scene.Scene, n time.Duration, source rand.Source) time.Duration {
			return rotatedAfter(s, reconnect.Advice{Wait: 40 * time.Minute, Spread: n}, source)
		}},
	{"Advice.By", 0, time.Minute, func(s *scene.Scene, n time.Duration, source rand.Source) time.Duration {
		return rotatedAfter(s, reconnect.Advice{By: time.Now().Add(n)}, source)
	}},
	{"Advice.By, far away", 0, backoff.MaxRetryAfter,
		func(s *scene.Scene, n time.Duration, source rand.Source) time.Duration {
			return rotatedAfter(s, reconnect.Advice{By: time.Now().Add(10 * n)}, source)
		}},
}

// A draw may be the start of its range, and not the end.
func TestDrawsStayInTheirRange(t *testing.T) {
	for _, d := range drawn {
		t.Run(d.option, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				require.Equal(t, d.low, d.draws(s, d.high, constant(0)))
			})
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				require.Equal(t, d.high-1, d.draws(s, d.high, ^constant(0)))
			})
		})
	}
}

// replacedAfter returns the age at which a session is replaced.
func replacedAfter(s *scene.Scene, r reconnect.Rotation, source rand.Source) time.Duration {
	s.Open(&reconnect.Options{Rotate: r, Run: reconnect.RunOptions{Rand: source}})
	s.WantDial().Accept()
	return s.WantDial().At
}

// rotatedAfter returns how long after the advice the rotation dials.
func rotatedAfter(s *scene.Scene, a reconnect.Advice, source rand.Source) time.Duration {
	c := s.Open(&reconnect.Options{Run: reconnect.RunOptions{Rand: source}})
	s.WantDial().Accept()
	c.Rotate(1, a)
	return s.WantDial().At
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{"": reflect.TypeFor[reconnect.Options]()}
	require.Empty(t, numeric.WithoutRow(options, bounds, timeBounds, drawn))
}
