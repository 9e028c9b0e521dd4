package gate_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// A kick has begun a second dial. The hook or Classify ends the goroutine for one of the two.
func TestGoexitBesideAnotherDialLeavesNothing(t *testing.T) {
	for _, name := range []string{"DialDone", "Classify"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate, first, kick := &scene.Gate{}, &scene.RunConn{}, make(chan struct{}, 1)
				var dials atomic.Int32
				o := &reconnect.RunOptions{Kick: kick, Gate: gate, Host: "h", Trace: new(reconnect.Trace)}
				exited := false
				exit := func() {
					if !exited {
						exited = true
						runtime.Goexit()
					}
				}
				if name == "DialDone" {
					o.Trace.DialDone = func(reconnect.DialDone) { exit() }
				} else {
					o.Classify = func(error) backoff.Verdict { exit(); return backoff.Verdict{} }
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					reconnect.Run(t.Context(), func(ctx context.Context) (*scene.RunConn, error) {
						switch n := dials.Add(1); {
						case n == 1 && name == "DialDone":
							time.Sleep(4 * time.Second)
							return first, nil
						case n == 2 && name == "Classify":
							time.Sleep(2 * time.Second)
							return nil, errors.New("refused")
						}
						<-ctx.Done()
						return nil, context.Cause(ctx)
					}, func(context.Context, *scene.RunConn, *reconnect.Session) error { return nil }, o)
				}()
				time.Sleep(2 * time.Second)
				kick <- struct{}{}
				<-ended
				require.EqualValues(t, 2, dials.Load())
				require.Equal(t, name == "DialDone", first.Closed)
				require.Equal(t, []string{"acquire h", "done stop", "acquire h", "done stop"}, gate.All())
			})
		})
	}
}
