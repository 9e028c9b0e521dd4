package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// noting returns a layer that notes its calls, and takes the messages with this text.
func noting(n *notes, name, takes string) *reconnect.Layer {
	return &reconnect.Layer{
		Open: func(_ context.Context, o *reconnect.Opening) error {
			n.add(fmt.Sprintf("%s opens %d", name, o.Session))
			return nil
		},
		Ready: func(session uint64) { n.add(fmt.Sprintf("%s ready %d", name, session)) },
		Receive: func(m reconnect.Message) bool {
			n.add(fmt.Sprintf("%s gets %s of %d", name, m.Data, m.Session))
			return string(m.Data) == takes
		},
		Lost: func(session uint64, cause error) { n.add(fmt.Sprintf("%s lost %d: %v", name, session, cause)) },
		End:  func(err error) { n.add(fmt.Sprintf("%s ends: %v", name, err)) },
	}
}

func TestLayersFollowTheLifeOfAConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var n notes
		o := withPolicy(every(time.Second))
		o.Layers = []*reconnect.Layer{noting(&n, "a", "1"), {}, noting(&n, "b", "2")}
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error { n.add("login"); return nil }
		c := s.open(&o)
		peer := s.wantDial().accept()
		deliver(peer, 1, 3)
		wantMessage(t, c, 1, "3")
		wantNothing(t, c)
		peer.Fail(errLost)
		s.wantDial().refuse(errLost)
		s.wantDial().accept()
		closeAndWait(c)
		require.Equal(t, []string{
			"login", "a opens 1", "b opens 1", "a ready 1", "b ready 1",
			"a gets 1 of 1", "a gets 2 of 1", "b gets 2 of 1", "a gets 3 of 1", "b gets 3 of 1",
			"a lost 1: read: lost", "b lost 1: read: lost",
			"login", "a opens 2", "b opens 2", "a ready 2", "b ready 2",
			"a lost 2: read: use of closed network connection", "b lost 2: read: use of closed network connection",
			"a ends: use of closed network connection", "b ends: use of closed network connection",
		}, n.all())
	})
}

// An attempt has failed if a layer says so. The layer hears that this session is lost, too.
func TestALayerCanFailAnAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var n notes
		bad := errors.New("no such topic")
		o := withPolicy(every(time.Second))
		o.Layers = []*reconnect.Layer{
			{Open: func(_ context.Context, o *reconnect.Opening) error {
				if o.Session == 1 {
					return bad
				}
				return nil
			}},
			noting(&n, "b", ""),
		}
		c := s.open(&o)
		s.wantDial().accept()
		require.ErrorIs(t, c.Status().Err, bad)
		s.wantDial().accept()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, []string{"b lost 1: OnSession: no such topic", "b opens 2", "b ready 2"}, n.all())
	})
}

// What one layer reads and does not need goes to the others, and then to the reader.
func TestDeliverAsksTheOtherLayersFirst(t *testing.T) {
	for name, push := range map[string]bool{"push": true, "pull": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				var n notes
				o := withPolicy(every(time.Second))
				if push {
					o.OnMessage = func(_ context.Context, m reconnect.Message) { n.add("reader gets " + string(m.Data)) }
				}
				pass := func(o *reconnect.Opening) {
					m, err := o.Read()
					require.NoError(t, err)
					require.NoError(t, o.Deliver(m))
				}
				a, b := noting(&n, "a", "1"), noting(&n, "b", "2")
				a.Open = func(_ context.Context, o *reconnect.Opening) error { pass(o); pass(o); return nil }
				o.Layers = []*reconnect.Layer{a, b}
				o.OnSession = func(_ context.Context, o *reconnect.Opening) error { pass(o); return nil }
				c := s.open(&o)
				peer := s.wantDial().accept()
				deliver(peer, 1, 3)
				want := []string{"a gets 1 of 1", "b gets 2 of 1", "b gets 3 of 1"}
				if push {
					want = append(want, "reader gets 3")
				}
				require.Equal(t, append(want, "b opens 1", "a ready 1", "b ready 1"), n.all())
				if !push {
					wantMessage(t, c, 1, "3")
				}
			})
		})
	}
}

// While one session replaces another, a layer sees both, by their numbers. It gets the
// messages of the next one at once, though the reader does not yet.
func TestALayerFollowsBothSessionsOfARotation(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var n notes
		o := rotating(reconnect.OverlapHold)
		o.Layers = []*reconnect.Layer{noting(&n, "a", "10")}
		c := s.open(&o)
		old := s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		next := s.wantDial().accept()
		deliver(next, 10, 11)
		deliver(old, 1, 1)
		old.Fail(errLost)
		synctest.Wait()
		require.Equal(t, []string{
			"a opens 1", "a ready 1", "a opens 2", "a ready 2", "a gets 10 of 2", "a gets 11 of 2", "a gets 1 of 1", "a lost 1: read: lost",
		}, n.all())
		wantMessage(t, c, 1, "1")
		wantSeam(t, c)
		wantMessage(t, c, 2, "11")
	})
}

// The seam of a protocol that resumes comes when it is known whether anything is missing.
func TestTheSeamOfAResumableStreamWaitsForTheNextSession(t *testing.T) {
	for name, resumes := range map[string]bool{"resumed": true, "not resumed": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := withPolicy(every(time.Second))
				o.Resumable = true
				o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
					if o.Session > 2 && resumes {
						return o.Resumed()
					}
					return nil
				}
				c := s.open(&o)
				peer := s.wantDial().accept()
				deliver(peer, 1, 1)
				peer.Fail(errLost)
				wantMessage(t, c, 1, "1")
				wantNothing(t, c)
				s.wantDial().refuse(errLost)
				wantNothing(t, c)
				s.wantDial().accept().Fail(errLost) // ready as session 2
				require.False(t, wantSeam(t, c).Resumed)
				wantNothing(t, c)
				s.wantDial().accept()
				seam := wantSeam(t, c)
				require.Equal(t, uint64(2), seam.Session)
				require.Equal(t, resumes, seam.Resumed)
			})
		})
	}
}

// The reader gets the last seam even if no session follows.
func TestTheSeamOfAResumableStreamComesAtTheEndToo(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.Resumable = true
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Fail(errLost)
		synctest.Wait()
		require.NoError(t, c.Shutdown(t.Context()))
		wantSeam(t, c)
	})
}

func TestResumedNeedsTheOption(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var got error
		o := withPolicy(every(time.Second))
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error { got = o.Resumed(); return nil }
		s.open(&o)
		s.wantDial().accept()
		require.ErrorContains(t, got, "Options.Resumable")
	})
}

// A layer has its Conn before the first dial. One that cannot start keeps New from starting.
func TestALayerStartsBeforeTheFirstDial(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var got *reconnect.Conn
		var n notes
		bad := errors.New("used already")
		last := &reconnect.Layer{
			Start: func(*reconnect.Conn) error { return bad },
			End:   func(error) { n.add("the last one ends") },
		}
		o := withPolicy(every(time.Second))
		o.Layers = []*reconnect.Layer{
			{Start: func(c *reconnect.Conn) error { n.add("starts as " + c.State().String()); got = c; return nil }},
			{End: func(err error) { n.add("ends: " + err.Error()) }},
			last,
		}
		_, err := reconnect.New(s, &o)
		require.EqualError(t, err, "reconnect: Options.Layers[2]: used already")
		require.ErrorIs(t, err, bad)
		require.Equal(t, []string{"starts as connecting", "ends: ended for good: " + err.Error()}, n.all())
		require.ErrorIs(t, got.Err(), bad)
		last.Start = nil
		c := s.open(&o)
		s.wantDial().accept()
		require.Same(t, c, got)
	})
}

func TestACallbackIsKnownByItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var c *reconnect.Conn
		var n notes
		note := func(what string, ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			n.add(fmt.Sprint(what, " ", c.InCallback(ctx)))
		}
		o := withPolicy(every(time.Second))
		o.Layers = []*reconnect.Layer{{
			Start: func(mine *reconnect.Conn) error { c = mine; return nil },
			Open:  func(ctx context.Context, o *reconnect.Opening) error { note("layer", ctx); return nil },
		}}
		o.OnSession = func(ctx context.Context, o *reconnect.Opening) error { note("OnSession", ctx); return nil }
		o.OnMessage = func(ctx context.Context, m reconnect.Message) { note("OnMessage", ctx) }
		o.OnSeam = func(ctx context.Context, _ *reconnect.Seam) { note("OnSeam", ctx) }
		s.open(&o)
		peer := s.wantDial().accept()
		deliver(peer, 1, 1)
		peer.Fail(errLost)
		s.wantDial().refuse(errLost)
		require.Equal(t, []string{"OnSession true", "layer true", "OnMessage true", "OnSeam true"}, n.all())
		require.False(t, c.InCallback(t.Context()))
		first := c
		other := withPolicy(every(time.Second))
		other.OnMessage = func(ctx context.Context, m reconnect.Message) { n.add(fmt.Sprint(first.InCallback(ctx))) }
		second := newScene(t)
		second.open(&other)
		deliver(second.wantDial().accept(), 1, 1)
		require.Equal(t, "false", n.all()[4])
	})
}

// A layer may end a session in its Ready, while the supervisor begins to read it.
func TestALayerMayRedialAtOnce(t *testing.T) {
	withWSServer(t, conntest.Discard, func(t *testing.T, server *wsServer) {
		var c *reconnect.Conn
		o := withPolicy(every(time.Second))
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.Layers = []*reconnect.Layer{{
			Start: func(mine *reconnect.Conn) error { c = mine; return nil },
			Ready: func(session uint64) {
				if session < 20 {
					c.Redial(session, errLost)
				}
			},
		}}
		server.open(t, &o)
		time.Sleep(time.Minute)
		require.Equal(t, uint64(20), c.Status().Session)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}
