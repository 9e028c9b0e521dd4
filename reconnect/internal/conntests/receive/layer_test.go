package receive_test

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
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// noting returns a layer that notes its calls, and takes the messages with this text.
func noting(n *scene.Notes, name, takes string) *reconnect.Layer {
	return &reconnect.Layer{
		Open: func(_ context.Context, o *reconnect.Opening) error {
			n.Add(fmt.Sprintf("%s opens %d", name, o.Session))
			return nil
		},
		Ready: func(session uint64) { n.Add(fmt.Sprintf("%s ready %d", name, session)) },
		Receive: func(m reconnect.Message) bool {
			n.Add(fmt.Sprintf("%s gets %s of %d", name, m.Data, m.Session))
			return string(m.Data) == takes
		},
		Lost: func(session uint64, cause error) { n.Add(fmt.Sprintf("%s lost %d: %v", name, session, cause)) },
		End:  func(err error) { n.Add(fmt.Sprintf("%s ends: %v", name, err)) },
	}
}

func TestLayersFollowTheLifeOfAConnection(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var n scene.Notes
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Layers = []*reconnect.Layer{noting(&n, "a", "1"), {}, noting(&n, "b", "2")}
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error { n.Add("login"); return nil }
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		scene.Deliver(peer, 1, 3)
		scene.WantMessage(t, c, 1, "3")
		scene.WantNothing(t, c)
		peer.Fail(scene.ErrLost)
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial().Accept()
		scene.CloseAndWait(c)
		require.Equal(t, []string{
			"login", "a opens 1", "b opens 1", "a ready 1", "b ready 1",
			"a gets 1 of 1", "a gets 2 of 1", "b gets 2 of 1", "a gets 3 of 1", "b gets 3 of 1",
			"a lost 1: read: lost", "b lost 1: read: lost",
			"login", "a opens 2", "b opens 2", "a ready 2", "b ready 2",
			"a lost 2: read: use of closed network connection", "b lost 2: read: use of closed network connection",
			"a ends: use of closed network connection", "b ends: use of closed network connection",
		}, n.All())
	})
}

// An attempt has failed if a layer says so. The layer hears that this session is lost, too.
func TestALayerCanFailAnAttempt(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var n scene.Notes
		bad := errors.New("no such topic")
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Layers = []*reconnect.Layer{
			{Open: func(_ context.Context, o *reconnect.Opening) error {
				if o.Session == 1 {
					return bad
				}
				return nil
			}},
			noting(&n, "b", ""),
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		require.ErrorIs(t, c.Status().Err, bad)
		s.WantDial().Accept()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, []string{"b lost 1: OnSession: no such topic", "b opens 2", "b ready 2"}, n.All())
	})
}

// What one layer reads and does not need goes to the others, and then to the reader.
func TestDeliverAsksTheOtherLayersFirst(t *testing.T) {
	for name, push := range map[string]bool{"push": true, "pull": false} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				var n scene.Notes
				o := scene.WithPolicy(scene.Every(time.Second))
				if push {
					o.OnMessage = func(_ context.Context, m reconnect.Message) {
						n.Add("reader gets " + string(m.Data))
					}
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
				c := s.Open(&o)
				peer := s.WantDial().Accept()
				scene.Deliver(peer, 1, 3)
				want := []string{"a gets 1 of 1", "b gets 2 of 1", "b gets 3 of 1"}
				if push {
					want = append(want, "reader gets 3")
				}
				require.Equal(t, append(want, "b opens 1", "a ready 1", "b ready 1"), n.All())
				if !push {
					scene.WantMessage(t, c, 1, "3")
				}
			})
		})
	}
}

// While one session replaces another, a layer sees both, by their numbers. It gets the
// messages of the next one at once, though the reader does not yet.
func TestALayerFollowsBothSessionsOfARotation(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var n scene.Notes
		o := scene.Rotating(reconnect.OverlapHold)
		o.Layers = []*reconnect.Layer{noting(&n, "a", "10")}
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		next := s.WantDial().Accept()
		scene.Deliver(next, 10, 11)
		scene.Deliver(old, 1, 1)
		old.Fail(scene.ErrLost)
		synctest.Wait()
		require.Equal(t, []string{
			"a opens 1", "a ready 1", "a opens 2", "a ready 2", "a gets 10 of 2", "a gets 11 of 2", "a gets 1 of 1", "a lost 1: read: lost",
		}, n.All())
		scene.WantMessage(t, c, 1, "1")
		scene.WantSeam(t, c)
		scene.WantMessage(t, c, 2, "11")
	})
}

// The seam of a protocol that resumes comes when it is known whether anything is missing.
func TestTheSeamOfAResumableStreamWaitsForTheNextSession(t *testing.T) {
	for name, resumes := range map[string]bool{"resumed": true, "not resumed": false} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := scene.WithPolicy(scene.Every(time.Second))
				o.Resumable = true
				o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
					if o.Session > 2 && resumes {
						return o.Resumed()
					}
					return nil
				}
				c := s.Open(&o)
				peer := s.WantDial().Accept()
				scene.Deliver(peer, 1, 1)
				peer.Fail(scene.ErrLost)
				scene.WantMessage(t, c, 1, "1")
				scene.WantNothing(t, c)
				s.WantDial().Refuse(scene.ErrLost)
				scene.WantNothing(t, c)
				s.WantDial().Accept().Fail(scene.ErrLost) // ready as session 2
				require.False(t, scene.WantSeam(t, c).Resumed)
				scene.WantNothing(t, c)
				s.WantDial().Accept()
				seam := scene.WantSeam(t, c)
				require.Equal(t, uint64(2), seam.Session)
				require.Equal(t, resumes, seam.Resumed)
			})
		})
	}
}

// The reader gets the last seam even if no session follows.
func TestTheSeamOfAResumableStreamComesAtTheEndToo(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Resumable = true
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		require.NoError(t, c.Shutdown(t.Context()))
		scene.WantSeam(t, c)
	})
}

func TestResumedNeedsTheOption(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var got error
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error { got = o.Resumed(); return nil }
		s.Open(&o)
		s.WantDial().Accept()
		require.ErrorContains(t, got, "Options.Resumable")
	})
}

// A layer has its Conn before the first dial. One that cannot start keeps New from starting.
func TestALayerStartsBeforeTheFirstDial(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var got *reconnect.Conn
		var n scene.Notes
		bad := errors.New("used already")
		last := &reconnect.Layer{
			Start: func(*reconnect.Conn) error { return bad },
			End:   func(error) { n.Add("the last one ends") },
		}
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Layers = []*reconnect.Layer{
			{Start: func(c *reconnect.Conn) error { n.Add("starts as " + c.State().String()); got = c; return nil }},
			{End: func(err error) { n.Add("ends: " + err.Error()) }},
			last,
		}
		_, err := reconnect.New(s, &o)
		require.EqualError(t, err, "reconnect: Options.Layers[2]: used already")
		require.ErrorIs(t, err, bad)
		require.Equal(t, []string{"starts as connecting", "ends: ended for good: " + err.Error()}, n.All())
		require.ErrorIs(t, got.Err(), bad)
		last.Start = nil
		c := s.Open(&o)
		s.WantDial().Accept()
		require.Same(t, c, got)
	})
}

func TestACallbackIsKnownByItsContext(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var c *reconnect.Conn
		var n scene.Notes
		note := func(what string, ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			n.Add(fmt.Sprint(what, " ", c.InCallback(ctx)))
		}
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Layers = []*reconnect.Layer{{
			Start: func(mine *reconnect.Conn) error { c = mine; return nil },
			Open:  func(ctx context.Context, o *reconnect.Opening) error { note("layer", ctx); return nil },
		}}
		o.OnSession = func(ctx context.Context, o *reconnect.Opening) error { note("OnSession", ctx); return nil }
		o.OnMessage = func(ctx context.Context, m reconnect.Message) { note("OnMessage", ctx) }
		o.OnSeam = func(ctx context.Context, _ *reconnect.Seam) { note("OnSeam", ctx) }
		s.Open(&o)
		peer := s.WantDial().Accept()
		scene.Deliver(peer, 1, 1)
		peer.Fail(scene.ErrLost)
		s.WantDial().Refuse(scene.ErrLost)
		require.Equal(t, []string{"OnSession true", "layer true", "OnMessage true", "OnSeam true"}, n.All())
		require.False(t, c.InCallback(t.Context()))
		first := c
		other := scene.WithPolicy(scene.Every(time.Second))
		other.OnMessage = func(ctx context.Context, m reconnect.Message) { n.Add(fmt.Sprint(first.InCallback(ctx))) }
		second := scene.New(t)
		second.Open(&other)
		scene.Deliver(second.WantDial().Accept(), 1, 1)
		require.Equal(t, "false", n.All()[4])
	})
}

// A layer may end a session in its Ready, while the supervisor begins to read it.
func TestALayerMayRedialAtOnce(t *testing.T) {
	scene.WithWSServer(t, conntest.Discard, func(t *testing.T, server *scene.WSServer) {
		var c *reconnect.Conn
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.Layers = []*reconnect.Layer{{
			Start: func(mine *reconnect.Conn) error { c = mine; return nil },
			Ready: func(session uint64) {
				if session < 20 {
					c.Redial(session, scene.ErrLost)
				}
			},
		}}
		server.Open(t, &o)
		time.Sleep(time.Minute)
		require.Equal(t, uint64(20), c.Status().Session)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}
