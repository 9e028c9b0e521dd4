package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// Promise 10: while opening too, a full inbox blocks.
func TestDeliverWaitsForRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		delivered := 0
		c := s.open(&reconnect.Options{
			Inbox: reconnect.Inbox{Messages: 2},
			OnSession: func(_ context.Context, op *reconnect.Opening) error {
				for ; delivered < 5; delivered++ {
					if err := op.Deliver(text(fmt.Sprint(delivered))); err != nil {
						return err
					}
				}
				return nil
			},
		})
		s.wantDial().accept()
		require.Equal(t, 2, delivered)
		for i := range 5 {
			wantMessage(t, c, 1, fmt.Sprint(i))
			synctest.Wait()
		}
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 4: the limit on opening ends that wait.
func TestTheLimitOnOpeningEndsDeliver(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		o.Inbox.Messages = 1
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			return errors.Join(op.Deliver(text("1")), op.Deliver(text("2")))
		}
		c := s.open(&o)
		s.wantDial().accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 30*time.Second, s.now())
		wantMessage(t, c, 1, "1")
		wantSeam(t, c)
	})
}

func TestDeliverToThoseWhoOnlyWriteDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(&reconnect.Options{
			Inbox:     reconnect.Inbox{Overflow: reconnect.OverflowDiscard},
			OnSession: func(_ context.Context, op *reconnect.Opening) error { return op.Deliver(text("x")) },
		})
		s.wantDial().accept()
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 4: a session whose OnSession was late has never been ready.
func TestALateOnSessionIsNeverReady(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seen notes
		o := run(every(time.Hour))
		o.OpenTimeout = time.Second
		o.Run.Trace = recorder(&seen)
		o.OnSession = func(ctx context.Context, _ *reconnect.Opening) error { <-ctx.Done(); return nil }
		c := s.open(&o)
		s.wantDial().accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		synctest.Wait()
		require.Equal(t, []string{"dial", "dialed ok", "session 1", "session 1 ended", "wait"}, seen.all())
	})
}

func TestOpenTimeoutCanBeSwitchedOff(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(&reconnect.Options{
			OpenTimeout: -1,
			OnSession:   func(context.Context, *reconnect.Opening) error { time.Sleep(time.Hour); return nil },
		})
		peer := s.wantDial().accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		require.False(t, peer.Closed())
	})
}

// OnSession sees why its connection was given up, not how that shows.
func TestAnOpeningLearnsTheCauseOfACut(t *testing.T) {
	for name, use := range map[string]func(*reconnect.Opening) error{
		"read":  func(op *reconnect.Opening) error { _, err := op.Read(); return err },
		"write": func(op *reconnect.Opening) error { return op.Write(text("login")) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := run(every(time.Hour))
				got := make(chan error, 1)
				proceed := make(chan struct{})
				o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
					<-proceed
					got <- use(op)
					return errLost
				}
				c := s.open(&o)
				s.wantDial().accept()
				c.Redial(1, errLost)
				close(proceed)
				require.Equal(t, errLost, <-got)
			})
		})
	}
}

// What OnSession delivers stays its own: later messages are read elsewhere.
func TestDeliverCopiesWhatItIsGiven(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		marker := text("MARKER-MARKER") // a constant, delivered more than once
		var snapshot conn.Message       // kept by OnSession
		o := run(every(0))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) (err error) {
			if snapshot, err = op.Read(); err != nil {
				return err
			}
			for _, m := range []conn.Message{snapshot, marker, marker} {
				err = errors.Join(err, op.Deliver(m))
			}
			return err
		}
		c := s.open(&o)
		d := s.wantDial()
		peer := d.accept()
		peer.Deliver(text("snapshot"))
		deliver(peer, 1, 40)
		for _, want := range []string{"snapshot", "MARKER-MARKER", "MARKER-MARKER"} {
			wantMessage(t, c, 1, want)
		}
		for i := range 40 {
			wantMessage(t, c, 1, fmt.Sprint(i+1))
			synctest.Wait()
		}
		require.Equal(t, "snapshot", string(snapshot.Data))
		require.Equal(t, "MARKER-MARKER", string(marker.Data))
	})
}
