package run_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// stuckConn is a connection whose Close blocks until release is closed, as that of a client that
// waits for its peer may.
type stuckConn struct{ release chan struct{} }

func (c stuckConn) Close() error { <-c.release; return nil }

// closeReports returns a Trace that notes in reports what SlowHandler and Overdue report.
func closeReports(reports *scene.Notes) *reconnect.Trace {
	note := func(kind, what string, since time.Duration) { reports.Add(fmt.Sprint(kind, " ", what, " ", since)) }
	return &reconnect.Trace{
		SlowHandler: func(e reconnect.SlowHandler) { note("slow", e.What, e.Since) },
		Overdue:     func(e reconnect.Overdue) { note("overdue", e.What, e.Since) },
	}
}

func TestStuckCloseIsReported(t *testing.T) {
	untilDone := func(ctx context.Context) error { <-ctx.Done(); return nil }
	for name, c := range map[string]struct {
		dial, serve func(ctx context.Context) error // nil means a function that returns immediately
		cancelled   bool                            // Run's context ends before Close is called
		wait        time.Duration
		want        []string
	}{
		"of lost session": {
			wait: time.Minute,
			want: []string{"slow Close 5s", "overdue Close 10s", "overdue Close 20s", "overdue Close 40s"},
		},
		"at cancellation": {
			serve: untilDone, cancelled: true,
			wait: 15 * time.Second,
			want: []string{"slow Close 5s", "overdue Close 10s"},
		},
		"of late connection": {
			dial: untilDone, cancelled: true,
			wait: 15 * time.Second,
			want: []string{"slow Close 5s", "overdue Close 10s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck, reports := stuckConn{make(chan struct{})}, new(scene.Notes)
				ctx, cancel := context.WithCancel(t.Context())
				dial := func(ctx context.Context) (stuckConn, error) {
					if c.dial != nil {
						return stuck, c.dial(ctx)
					}
					return stuck, nil
				}
				serve := func(ctx context.Context, _ stuckConn, _ *reconnect.Session) error {
					if c.serve != nil {
						return c.serve(ctx)
					}
					return scene.ErrLost
				}
				o := &reconnect.RunOptions{Trace: closeReports(reports)}
				var run sync.WaitGroup
				run.Go(func() { _ = reconnect.Run(ctx, dial, serve, o) })
				synctest.Wait()
				if c.cancelled {
					cancel()
				}
				time.Sleep(c.wait)
				require.Equal(t, c.want, reports.All())
				cancel()
				close(stuck.release)
				run.Wait()
			})
		})
	}
}

// Each hook that runs while a connection is open.
func TestHookThatDoesNotReturnLeavesNothingOpen(t *testing.T) {
	for how, leave := range map[string]func(){"panic": func() { panic("hook") }, "Goexit": runtime.Goexit} {
		for hook, trace := range map[string]*reconnect.Trace{
			"DialDone":     {DialDone: func(reconnect.DialDone) { leave() }},
			"SessionStart": {SessionStart: func(*reconnect.Session) { leave() }},
			"SessionReady": {SessionReady: func(*reconnect.Session) { leave() }},
			"SessionDone":  {SessionDone: func(reconnect.SessionDone) { leave() }},
		} {
			t.Run(hook+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g, c := &scene.Gate{}, &scene.RunConn{}
					dial := func(context.Context) (*scene.RunConn, error) { return c, nil }
					serve := func(_ context.Context, _ *scene.RunConn, s *reconnect.Session) error {
						s.Ready()
						return io.EOF
					}
					o := &reconnect.RunOptions{Gate: g, Host: "h", Trace: trace}
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						defer func() { recover() }()
						_ = reconnect.Run(t.Context(), dial, serve, o)
					}()
					<-ended
					require.True(t, c.Closed)
					require.Len(t, g.All(), 2)
				})
			})
		}
	}
}
