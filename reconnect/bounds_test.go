package reconnect_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// bound is a limit that an option sets, or that its documentation names.
type bound struct {
	name string
	n    int

	// within uses k of what is bounded, and reports whether that was within the bound.
	within func(t *testing.T, s *scene, n, k int) bool
}

// Promise 10: each bound holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	for _, b := range []bound{
		{"Inbox.Messages", 3, func(t *testing.T, s *scene, n, k int) bool {
			c, peer := readInbox(t, s, reconnect.Inbox{Messages: n, Overflow: reconnect.InboxDisconnect})
			deliver(peer, 1, k)
			return c.State() == reconnect.StateReady
		}},
		{"Inbox.Messages by default", 64, func(t *testing.T, s *scene, _, k int) bool {
			c, peer := readInbox(t, s, reconnect.Inbox{Overflow: reconnect.InboxDisconnect})
			deliver(peer, 1, k)
			return c.State() == reconnect.StateReady
		}},
		{"Inbox.Messages with InboxDropOldest", 3, func(t *testing.T, s *scene, n, k int) bool {
			c, peer := readInbox(t, s, reconnect.Inbox{Messages: n, Overflow: reconnect.InboxDropOldest})
			deliver(peer, 1, k)
			_, err := c.Read(t.Context(), nil)
			return err == nil
		}},
		{"Inbox.Messages with InboxBlock", 3, func(t *testing.T, s *scene, n, k int) bool {
			c, peer := readInbox(t, s, reconnect.Inbox{Messages: n})
			deliver(peer, 1, k)
			return c.Stats().Received == uint64(k)
		}},
		{"Inbox.Bytes, at which there is no room", 9, func(t *testing.T, s *scene, n, k int) bool {
			c, peer := readInbox(t, s, reconnect.Inbox{Bytes: n + 1, Overflow: reconnect.InboxDisconnect})
			peer.Deliver(blob(k), blob(1))
			synctest.Wait()
			return c.State() == reconnect.StateReady
		}},
		{"Inbox.Bytes with InboxBlock, at which there is no room", 9, func(t *testing.T, s *scene, n, k int) bool {
			c, peer := readInbox(t, s, reconnect.Inbox{Bytes: n + 1})
			peer.Deliver(blob(k), blob(1))
			synctest.Wait()
			return c.Stats().Received == 2
		}},
		{"Inbox.Bytes with InboxDropOldest", 10, func(t *testing.T, s *scene, n, k int) bool {
			c, peer := readInbox(t, s, reconnect.Inbox{Bytes: n, Overflow: reconnect.InboxDropOldest})
			peer.Deliver(blob(3), blob(k-3))
			synctest.Wait()
			_, err := c.Read(t.Context(), nil)
			return err == nil
		}},
		{"Outbox.Messages", 3, func(t *testing.T, s *scene, n, k int) bool {
			o, _ := sending(reconnect.WhenDownKeep)
			o.Outbox.Messages = n
			c := s.open(o)
			for range k - 1 {
				queue(t, c, "a")
			}
			return c.Send(out("b")) == nil
		}},
		{"Outbox.Messages with OutboxDropOldest", 3, func(t *testing.T, s *scene, n, k int) bool {
			o, receipts := sending(reconnect.WhenDownKeep)
			o.Outbox.Messages, o.Outbox.Overflow = n, reconnect.OutboxDropOldest
			c := s.open(o)
			for range k {
				queue(t, c, "a")
			}
			synctest.Wait()
			return len(receipts.all()) == 0
		}},
		{"Outbox.Bytes, of one message", 5, func(t *testing.T, s *scene, n, k int) bool {
			o, _ := sending(reconnect.WhenDownKeep)
			o.Outbox.Bytes = n
			return s.open(o).Send(out(strings.Repeat("x", k))) == nil
		}},
		{"Outbox.Bytes, of two messages", 5, func(t *testing.T, s *scene, n, k int) bool {
			o, _ := sending(reconnect.WhenDownKeep)
			o.Outbox.Bytes = n
			c := s.open(o)
			queue(t, c, "ab")
			return c.Send(out(strings.Repeat("x", k-2))) == nil
		}},
		{"receipts that wait for OnReceipt", 3, func(t *testing.T, s *scene, n, k int) bool {
			o, _ := sending(reconnect.WhenDownFail)
			o.Outbox.Messages = n
			o.Outbox.OnReceipt = func(ctx context.Context, _ reconnect.Receipt) { <-ctx.Done() }
			c := s.open(o)
			s.wantDial().accept()
			queue(t, c, "its receipt is given")
			synctest.Wait()
			for range k - 1 {
				queue(t, c, "a")
				synctest.Wait()
			}
			return c.Send(out("b")) == nil
		}},
		{"Pace", 3, func(t *testing.T, s *scene, n, k int) bool {
			o, _ := sending(reconnect.WhenDownFail)
			o.Liveness.Limit = -1
			o.Pace = budget.Window{N: n, Per: time.Second}
			c := s.open(o)
			peer := s.wantDial().accept()
			for range k {
				queue(t, c, "a")
			}
			synctest.Wait()
			return len(peer.Written()) == k
		}},
		{"rotations in a row", 10, rotationsInARow(reconnect.OverlapHold)},
		{"rotations in a row, with OverlapBreakFirst", 10, rotationsInARow(reconnect.OverlapBreakFirst)},
		{"backoff.Limit", 4, func(t *testing.T, s *scene, n, k int) bool {
			o := withPolicy(backoff.Limit(every(time.Second), n, 0))
			c := s.open(&o)
			for range k {
				s.wantDial().refuse(errLost)
			}
			select {
			case <-s.dials: // the dial after k waits
				return true
			case <-c.Done():
				return false
			}
		}},
		{"Budget of logins", 3, func(t *testing.T, s *scene, n, k int) bool {
			o := withPolicy(every(time.Second))
			logins, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: n, Per: time.Hour}}})
			require.NoError(t, err)
			o.Run.Logins = logins
			o.OnSession = func(_ context.Context, op *reconnect.Opening) error { return op.Write(text("login")) }
			s.open(&o)
			for range k - 1 {
				peer := s.wantDial().accept()
				peer.Fail(errLost)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			select {
			case <-s.dials:
				return true
			default:
				return false
			}
		}},
	} {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				inBubble(t, func(t *testing.T, s *scene) {
					require.Equal(t, k <= b.n, b.within(t, s, b.n, k), "%d of %d", k, b.n)
				})
			}
		})
	}
}

// rotationsInARow returns whether k rotations begin without a pause.
func rotationsInARow(overlap reconnect.Overlap) func(t *testing.T, s *scene, _, k int) bool {
	return func(_ *testing.T, s *scene, _, k int) bool {
		s.fake = alive
		rotation := reconnect.Rotation{Drain: time.Millisecond, Overlap: overlap}
		c := s.open(&reconnect.Options{Rotate: rotation})
		s.wantDial().accept()
		for range k {
			c.Rotate(c.Status().Session, reconnect.Advice{})
			synctest.Wait()
			select {
			case d := <-s.dials:
				d.accept()
			default:
				return false
			}
			for time.Sleep(time.Microsecond); c.Status().Rotating; {
				time.Sleep(time.Microsecond)
			}
		}
		return true
	}
}

// timeBound is a time that an option sets, or that its documentation names.
type timeBound struct {
	name string
	n    time.Duration
	at   bool // the event has happened at n itself

	// happened waits for k, and reports whether the event has happened.
	happened func(t *testing.T, s *scene, n, k time.Duration) bool
}

// Promises 3, 4, 8 and 10: what happens after a time does not happen a nanosecond before that.
func TestTimesAreExact(t *testing.T) {
	after := func(k time.Duration) { time.Sleep(k); synctest.Wait() }
	for _, b := range []timeBound{
		{"Outbox.Age", 5 * time.Second, true, func(t *testing.T, s *scene, n, k time.Duration) bool {
			o, receipts := sending(reconnect.WhenDownKeep)
			o.Outbox.Age = n
			queue(t, s.open(o), "a")
			after(k)
			return len(receipts.all()) == 1
		}},
		{"Outbox.Age by default", 5 * time.Minute, true, func(t *testing.T, s *scene, _, k time.Duration) bool {
			o, receipts := sending(reconnect.WhenDownKeep)
			queue(t, s.open(o), "a")
			after(k)
			return len(receipts.all()) == 1
		}},
		{"Outgoing.Deadline", time.Second, true, func(t *testing.T, s *scene, n, k time.Duration) bool {
			o, receipts := sending(reconnect.WhenDownKeep)
			c := s.open(o)
			require.NoError(t, c.Send(reconnect.Outgoing{Message: text("a"), Deadline: time.Now().Add(n)}))
			after(k)
			return len(receipts.all()) == 1
		}},
		{"OpenTimeout", 3 * time.Second, true, func(t *testing.T, s *scene, n, k time.Duration) bool {
			ended := false
			o := withPolicy(every(time.Hour))
			o.OpenTimeout = n
			o.OnSession = func(ctx context.Context, _ *reconnect.Opening) error {
				<-ctx.Done()
				ended = true
				return context.Cause(ctx)
			}
			s.open(&o)
			s.wantDial().accept()
			after(k)
			return ended
		}},
		{"OpenTimeout by default", 30 * time.Second, true, func(t *testing.T, s *scene, _, k time.Duration) bool {
			o := withPolicy(every(time.Hour))
			o.OnSession = func(ctx context.Context, _ *reconnect.Opening) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			c := s.open(&o)
			s.wantDial().accept()
			after(k)
			return c.State() == reconnect.StateWaiting
		}},
		{"Liveness.Limit", 9 * time.Second, true, func(t *testing.T, s *scene, n, k time.Duration) bool {
			s.fake = alive
			o := withPolicy(every(time.Hour))
			o.Liveness.Limit = n
			c := s.open(&o)
			s.wantDial().accept().Mute()
			after(k)
			return c.State() == reconnect.StateWaiting
		}},
		{"Liveness.ProbeEvery", 2 * time.Second, true, func(t *testing.T, s *scene, n, k time.Duration) bool {
			s.fake = alive
			o := withPolicy(every(time.Hour))
			o.Liveness.ProbeEvery = n
			s.open(&o)
			peer := s.wantDial().accept()
			after(k)
			return peer.Pings() == 1
		}},
		{"Stall.Limit", 10 * time.Second, true, func(t *testing.T, s *scene, n, k time.Duration) bool {
			o := stallOptions(n)
			c := s.open(&o)
			s.wantDial().accept()
			after(k)
			return c.State() != reconnect.StateReady
		}},
		{"KeepAlive.Every", 8 * time.Second, true, func(t *testing.T, s *scene, n, k time.Duration) bool {
			o := withPolicy(every(time.Hour))
			o.KeepAlive = reconnect.KeepAlive{Every: n, Message: func() conn.Message { return text("idle") }}
			s.open(&o)
			peer := s.wantDial().accept()
			after(k)
			return written(peer) == "idle"
		}},
		{"Rotate.Drain", 2 * time.Second, true, func(t *testing.T, s *scene, n, k time.Duration) bool {
			s.fake = alive
			c := s.open(&reconnect.Options{Rotate: reconnect.Rotation{Drain: n}})
			old := s.wantDial().accept()
			c.Rotate(1, reconnect.Advice{})
			s.wantDial().accept()
			after(k)
			_, _, closed := old.ClosedWith()
			return closed
		}},
		{"CloseTimeout", 3 * time.Second, true, func(_ *testing.T, s *scene, n, k time.Duration) bool {
			return goodbyeEnds(s, n, k)
		}},
		{"CloseTimeout by default", 5 * time.Second, true, func(_ *testing.T, s *scene, _, k time.Duration) bool {
			return goodbyeEnds(s, 0, k)
		}},
		{"backoff.RetryAfter", time.Minute, true, func(_ *testing.T, s *scene, n, k time.Duration) bool {
			return dialsAgain(s, n, k)
		}},
		{"backoff.MaxRetryAfter", backoff.MaxRetryAfter, true, func(_ *testing.T, s *scene, n, k time.Duration) bool {
			return dialsAgain(s, 10*n, k)
		}},
		{"RunOptions.StableAfter", 5 * time.Second, true, stableAfter},
		{"RunOptions.StableAfter by default", 10 * time.Second, true,
			func(t *testing.T, s *scene, _, k time.Duration) bool { return stableAfter(t, s, 0, k) }},
		{"RunOptions.StableAfter if negative", 2 * time.Second, true,
			func(t *testing.T, s *scene, _, k time.Duration) bool { return stableAfter(t, s, -1, k) }},
	} {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				inBubble(t, func(t *testing.T, s *scene) {
					want := k > b.n || k == b.n && b.at
					require.Equal(t, want, b.happened(t, s, b.n, k), "after %v, and the option is %v", k, b.n)
				})
			}
		})
	}
}

// goodbyeEnds reports whether Shutdown has ended after k, although the peer does not answer.
func goodbyeEnds(s *scene, limit, k time.Duration) bool {
	s.fake = alive
	c := s.open(&reconnect.Options{CloseTimeout: limit})
	s.wantDial().accept().Mute()
	synctest.Wait()
	go c.Shutdown(context.Background()) // ends with the Conn
	time.Sleep(k)
	synctest.Wait()
	return c.State() == reconnect.StateClosed
}

// dialsAgain reports whether there was another dial after k, although the server has asked for a wait.
func dialsAgain(s *scene, wait, k time.Duration) bool {
	o := withPolicy(every(0))
	s.open(&o)
	s.wantDial().refuse(backoff.RetryAfter(errLost, wait))
	time.Sleep(k)
	synctest.Wait()
	select {
	case <-s.dials:
		return true
	default:
		return false
	}
}

// stableAfter reports whether a session that was ready for k was stable.
func stableAfter(_ *testing.T, s *scene, option, k time.Duration) (stable bool) {
	o := withPolicy(every(time.Second))
	o.Run.StableAfter = option
	o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { stable = e.Stable }}
	s.open(&o)
	peer := s.wantDial().accept()
	time.Sleep(k)
	peer.Fail(errLost)
	synctest.Wait()
	return stable
}

// A number without a unit is an error, and a millisecond is not.
func TestShortestIntervalsAreExact(t *testing.T) {
	message := func() conn.Message { return text("idle") }
	for name, set := range map[string]func(o *reconnect.Options, d time.Duration){
		"Rotate.After":        func(o *reconnect.Options, d time.Duration) { o.Rotate.After = d },
		"Liveness.ProbeEvery": func(o *reconnect.Options, d time.Duration) { o.Liveness.ProbeEvery = d },
		"KeepAlive.Every": func(o *reconnect.Options, d time.Duration) {
			o.KeepAlive = reconnect.KeepAlive{Every: d, Message: message}
		},
	} {
		for d := time.Millisecond - 1; d <= time.Millisecond+1; d++ {
			inBubble(t, func(t *testing.T, s *scene) {
				o := new(reconnect.Options)
				set(o, d)
				c, err := reconnect.New(s, o)
				require.Equal(t, d >= time.Millisecond, err == nil, "%s is %v", name, d)
				if err == nil {
					closeAndWait(c)
				}
			})
		}
	}
}
