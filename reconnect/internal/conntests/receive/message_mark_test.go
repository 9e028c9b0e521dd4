package receive_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// story notes what a reader gets: "1: a", "seam 1", "mark 2".
type story struct{ scene.Notes }

func (n *story) message(_ context.Context, m reconnect.Message) {
	n.Add(fmt.Sprintf("%d: %s", m.Session, m.Data))
}

func (n *story) seam(_ context.Context, s *reconnect.Seam) {
	switch {
	case s.Dropped > 0 && s.Refetch:
		n.Add(fmt.Sprintf("dropped %d, refetch", s.Dropped))
	case s.Dropped > 0:
		n.Add(fmt.Sprintf("dropped %d", s.Dropped))
	case s.Refetch:
		n.Add(fmt.Sprint("mark ", s.Session))
	default:
		n.Add(fmt.Sprint("seam ", s.Session))
	}
}

// want asserts what the reader has got since the start.
func (n *story) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	require.Equal(t, want, n.All())
}

// bothWays runs a test with marks twice: by OnMessage and OnSeam, and by Messages.
func bothWays(
	t *testing.T, o reconnect.Options,
	f func(t *testing.T, s *scene.Scene, open func() *reconnect.Conn, n *story),
) {
	for _, push := range []bool{true, false} {
		t.Run(fmt.Sprintf("push=%v", push), func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				n, o := new(story), o
				o.MarkRefetch = true
				if push {
					o.OnMessage, o.OnSeam = n.message, n.seam
				}
				f(t, s, func() *reconnect.Conn {
					c := s.Open(&o)
					if !push {
						go n.read(c) // ends with c
					}
					return c
				}, n)
			})
		})
	}
}

// read reads until the end.
func (n *story) read(c *reconnect.Conn) {
	for m, err := range c.Messages(context.Background()) {
		if seam, ok := errors.AsType[*reconnect.Seam](err); ok {
			n.seam(context.Background(), seam)
		} else if err == nil {
			n.message(context.Background(), m)
		}
	}
}

// deliverOne is an OnSession that delivers the first message and waits for the second.
func deliverOne(_ context.Context, o *reconnect.Opening) error {
	m, err := o.Read()
	if err == nil {
		err = o.Deliver(m)
	}
	if err == nil {
		_, err = o.Read()
	}
	return err
}

func TestTheMarkComesWhenASessionIsReady(t *testing.T) {
	o := scene.WithPolicy(scene.Every(time.Second))
	o.OnSession = deliverOne
	bothWays(t, o, func(t *testing.T, s *scene.Scene, open func() *reconnect.Conn, n *story) {
		open()
		peer := s.WantDial().Accept()
		peer.Deliver(scene.Text("a"))
		n.want(t, "1: a")
		peer.Deliver(scene.Text("ok"), scene.Text("b"))
		n.want(t, "1: a", "mark 1", "1: b")
		peer.Fail(scene.ErrLost)
		n.want(t, "1: a", "mark 1", "1: b", "seam 1")
		peer = s.WantDial().Accept()
		peer.Deliver(scene.Text("c"))
		n.want(t, "1: a", "mark 1", "1: b", "seam 1", "2: c")
		peer.Fail(scene.ErrLost) // it was never ready
		peer = s.WantDial().Accept()
		peer.Deliver(scene.Text("d"), scene.Text("ok"))
		n.want(t, "1: a", "mark 1", "1: b", "seam 1", "2: c", "seam 2", "3: d", "mark 3")
	})
}

func TestWithoutMarkRefetchThereIsNoMark(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error { o.HoldRefetch()(); return nil }
		c := s.Open(&o)
		s.WantDial().Accept().Fail(scene.ErrLost)
		synctest.Wait()
		require.False(t, scene.WantSeam(t, c).Refetch)
		s.WantDial().Accept()
		scene.WantNothing(t, c)
	})
}

// A seam that waits until it is known whether the stream is resumed comes before the mark.
func TestTheMarkComesAfterAResumedSeam(t *testing.T) {
	o := scene.WithPolicy(scene.Every(time.Second))
	o.Resumable = true
	o.OnSession = func(_ context.Context, o *reconnect.Opening) error { return o.Resumed() }
	bothWays(t, o, func(t *testing.T, s *scene.Scene, open func() *reconnect.Conn, n *story) {
		open()
		s.WantDial().Accept().Fail(scene.ErrLost)
		d := s.WantDial()
		n.want(t, "mark 1")
		d.Accept()
		n.want(t, "mark 1", "seam 1", "mark 2")
	})
}

// The next session is ready while the old one is still read. Its mark comes after the seam.
func TestTheMarkOfARotationComesAfterItsSeam(t *testing.T) {
	for way, want := range map[reconnect.Overlap][]string{
		reconnect.OverlapHold: {"mark 1", "1: a", "seam 1", "mark 2", "2: b", "2: c"},
		reconnect.OverlapMix:  {"mark 1", "2: b", "1: a", "seam 1", "mark 2", "2: c"},
	} {
		bothWays(t, scene.Rotating(way), func(t *testing.T, s *scene.Scene, open func() *reconnect.Conn, n *story) {
			c := open()
			old := s.WantDial().Accept()
			c.Rotate(1, reconnect.Advice{})
			next := s.WantDial().Accept()
			deliver := func(peer interface{ Deliver(...conn.Message) }, data string) {
				peer.Deliver(scene.Text(data))
				synctest.Wait()
			}
			deliver(next, "b")
			deliver(old, "a")
			old.Fail(&conn.CloseError{Code: 1001})
			synctest.Wait()
			deliver(next, "c")
			n.want(t, want...)
		})
	}
}

// The old session is lost while the next one is being opened, or is closed first.
func TestTheMarkOfARotationComesWhenTheNextSessionIsReady(t *testing.T) {
	for _, way := range []reconnect.Overlap{reconnect.OverlapHold, reconnect.OverlapMix, reconnect.OverlapBreakFirst} {
		o := scene.Rotating(way)
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
			_, err := o.Read()
			return err
		}
		bothWays(t, o, func(t *testing.T, s *scene.Scene, open func() *reconnect.Conn, n *story) {
			c := open()
			old := s.WantDial().Accept()
			old.Deliver(scene.Text("ok"))
			n.want(t, "mark 1")
			c.Rotate(1, reconnect.Advice{})
			synctest.Wait()
			old.Fail(scene.ErrLost)
			next := s.WantDial().Accept()
			n.want(t, "mark 1", "seam 1")
			next.Deliver(scene.Text("ok"))
			n.want(t, "mark 1", "seam 1", "mark 2")
		})
	}
}

// A session that replaces another is lost while the old one is still read.
func TestASessionThatIsLostWhileTheOldOneIsReadHasNoMarkOfUse(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.MarkRefetch = true
		c := s.Open(&o)
		old := s.WantDial().Accept()
		require.True(t, scene.WantSeam(t, c).Refetch)
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Accept().Fail(scene.ErrLost)
		time.Sleep(time.Minute)
		require.True(t, old.Closed())
		require.Equal(t, uint64(1), scene.WantSeam(t, c).Session)
		require.Equal(t, uint64(2), scene.WantSeam(t, c).Session)
		scene.WantNothing(t, c)
		s.WantDial().Accept()
		require.Equal(t, reconnect.Seam{Session: 3, Refetch: true}, *scene.WantSeam(t, c))
	})
}

// A layer may hold the mark longer than its session lives.
func TestAMarkThatIsHeldComesWhenItIsReleased(t *testing.T) {
	var releases []func()
	o := scene.WithPolicy(scene.Every(time.Second))
	o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
		releases = append(releases, o.HoldRefetch(), o.HoldRefetch())
		return nil
	}
	bothWays(t, o, func(t *testing.T, s *scene.Scene, open func() *reconnect.Conn, n *story) {
		releases = nil
		open()
		peer := s.WantDial().Accept()
		peer.Deliver(scene.Text("a"))
		releases[0]()
		releases[0]() // without effect
		n.want(t, "1: a")
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		releases[1]() // too late
		peer = s.WantDial().Accept()
		peer.Deliver(scene.Text("b"))
		synctest.Wait()
		releases[2]()
		releases[3]()
		n.want(t, "1: a", "seam 1", "2: b", "mark 2")
	})
}

// A session has just ended, and its supervisor, which is in a layer, does not know that yet.
func TestAMarkThatIsReleasedAfterItsSessionNeverComes(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var n story
		var release func()
		busy := make(chan struct{})
		goOn := sync.OnceFunc(func() { close(busy) })
		defer goOn()
		o := scene.WithPolicy(scene.Every(time.Second))
		o.MarkRefetch, o.OnMessage, o.OnSeam = true, n.message, n.seam
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
			if o.Session == 1 {
				release = o.HoldRefetch()
			}
			return nil
		}
		o.Layers = []*reconnect.Layer{{Receive: func(m reconnect.Message) bool { <-busy; return false }}}
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		peer.Deliver(scene.Text("a"))
		synctest.Wait()
		c.Redial(1, scene.ErrLost)
		time.Sleep(time.Minute) // for the farewell
		release()
		n.want(t)
		goOn()
		s.WantDial().Accept()
		n.want(t, "1: a", "seam 1", "mark 2")
	})
}

// What a layer has released last calls OnSeam in a goroutine of its own, and yet not beside OnMessage. Its
// context ends with the session.
func TestTheMarkOfALayerComesNeverBesideOnMessage(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen scene.Notes
		var release func()
		o := scene.WithPolicy(scene.Every(time.Second))
		o.MarkRefetch = true
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error { release = o.HoldRefetch(); return nil }
		o.OnMessage = func(_ context.Context, m reconnect.Message) {
			seen.Add("message " + string(m.Data))
			time.Sleep(time.Second)
			seen.Add("done")
		}
		o.OnSeam = func(ctx context.Context, m *reconnect.Seam) {
			if m.Refetch {
				seen.Add("mark")
				time.Sleep(time.Second)
				seen.Add("done")
				<-ctx.Done()
			}
		}
		s.Open(&o)
		peer := s.WantDial().Accept()
		peer.Deliver(scene.Text("1"))
		synctest.Wait()
		release()
		time.Sleep(1500 * time.Millisecond)
		peer.Deliver(scene.Text("2")) // while OnSeam runs
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"message 1", "done", "mark", "done"}, seen.All())
	})
}

// The mark waits for OnMessage of the next session when its own session ends. The seam still waits.
func TestMarkThatWaitedForEndedSessionReleasesNothing(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen scene.Notes
		var release func()
		o := scene.Rotating(reconnect.OverlapMix)
		o.MarkRefetch = true
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
			if o.Session == 1 {
				release = o.HoldRefetch()
			}
			return nil
		}
		o.OnMessage = func(_ context.Context, m reconnect.Message) {
			seen.Add("message " + string(m.Data))
			time.Sleep(time.Second)
			seen.Add("done")
		}
		o.OnSeam = func(_ context.Context, m *reconnect.Seam) { seen.Add(m.Error()) }
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Accept().Deliver(scene.Text("b"))
		synctest.Wait()
		release()
		synctest.Wait()
		old.Fail(scene.ErrLost)
		time.Sleep(time.Minute)
		require.Equal(t, []string{
			"message b", "done", "session 1 ended: read: lost", "session 2: missing messages can be fetched now",
		}, seen.All())
	})
}

// The reader is slow: the session has ended when it comes to the mark.
func TestAMarkIsTakenBackWhenItsSessionEndsUnread(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.MarkRefetch, o.Inbox = true, reconnect.Inbox{Messages: 1, Overflow: reconnect.InboxDropOldest}
		c := s.Open(&o)
		for range 100 { // more than the seams that are kept apart
			s.WantDial().Accept().Fail(scene.ErrLost)
		}
		scene.Deliver(s.WantDial().Accept(), 1, 3)
		lost := 0
		for lost < 100 {
			seam := scene.WantSeam(t, c)
			require.False(t, seam.Refetch)
			lost += seam.Lost
		}
		require.Equal(t, reconnect.Seam{Session: 101, Refetch: true}, *scene.WantSeam(t, c))
		require.Equal(t, 2, scene.WantSeam(t, c).Dropped)
		scene.WantMessage(t, c, 101, "3")
		scene.WantNothing(t, c)
	})
}

// While OnSeam has a mark nobody reads, and so there is no verdict on the peer.
func TestAPeerIsNotCutWhileOnSeamHasAMark(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.MarkRefetch = true
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.OnSeam = func(ctx context.Context, m *reconnect.Seam) {
			if m.Session == 1 && m.Refetch {
				time.Sleep(time.Hour)
			}
		}
		s.Fake = scene.Alive
		c := s.Open(&o)
		s.WantDial().Accept().Mute()
		time.Sleep(time.Hour - 1)
		require.Equal(t, reconnect.StateReady, c.State())
		time.Sleep(time.Minute)
		require.Equal(t, uint64(1), c.Stats().Lost)
		s.WantDial().Accept()
	})
}

// Messages that were dropped can be fetched at once, if the session has its mark.
func TestTheSeamOfDroppedMessagesSaysWhetherARefetchIsSafe(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var release func()
		n := new(story)
		o := scene.WithPolicy(scene.Every(time.Second))
		o.MarkRefetch, o.Inbox = true, reconnect.Inbox{Messages: 1, Overflow: reconnect.InboxDropOldest}
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error { release = o.HoldRefetch(); return nil }
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		scene.Deliver(peer, 1, 3)
		release()
		n.seam(t.Context(), scene.WantSeam(t, c))
		scene.WantMessage(t, c, 1, "3")
		n.seam(t.Context(), scene.WantSeam(t, c))
		scene.Deliver(peer, 4, 6)
		n.seam(t.Context(), scene.WantSeam(t, c))
		scene.WantMessage(t, c, 1, "6")
		scene.Deliver(peer, 7, 8)
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		n.seam(t.Context(), scene.WantSeam(t, c))
		scene.WantMessage(t, c, 1, "8")
		n.seam(t.Context(), scene.WantSeam(t, c))
		n.want(t, "dropped 2", "mark 1", "dropped 2, refetch", "dropped 1", "seam 1")
	})
}

// A session ends while a layer has just released its mark, or while OnSeam has it.
func TestNothingIsLeftOfTheMarkOfALayer(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen, overdue scene.Notes
		var release func()
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Trace = &reconnect.Trace{Overdue: func(e reconnect.Overdue) { overdue.Add(e.What) }}
		o.MarkRefetch = true
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error { release = o.HoldRefetch(); return nil }
		o.OnSeam = func(ctx context.Context, m *reconnect.Seam) {
			if m.Refetch {
				<-ctx.Done()
				time.Sleep(time.Minute)
			}
			seen.Add(m.Error())
		}
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		release()
		peer.Fail(scene.ErrLost) // perhaps before the goroutine of OnSeam begins
		s.WantDial().Accept()
		all := seen.All()
		require.Equal(t, "session 1 ended: read: lost", all[len(all)-1], "%v: no mark comes after the seam", all)
		release()
		synctest.Wait()
		start := time.Now()
		c.Close()
		<-c.Done()
		require.Equal(t, time.Minute, time.Since(start))
		require.Contains(t, seen.All(), "session 2: missing messages can be fetched now")
		require.Contains(t, overdue.All(), "OnSeam")
	})
}

// A mark whose OnSeam ends its goroutine costs the session.
func TestAMarkThatEndsItsGoroutineIsAnError(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var release func()
		var causes []string
		o := scene.WithPolicy(scene.Every(time.Second))
		o.MarkRefetch = true
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error { release = o.HoldRefetch(); return nil }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) {
			if s.Refetch {
				runtime.Goexit()
			}
			causes = append(causes, s.Cause.Error())
		}
		s.Open(&o)
		s.WantDial().Accept()
		release()
		s.WantDial().Accept()
		require.Len(t, causes, 1)
		require.Contains(t, causes[0], "OnSeam")
	})
}
