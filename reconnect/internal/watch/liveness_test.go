package watch

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// quiet is a Report that drops each event.
type quiet struct{}

func (quiet) ProbeStart(uint64, time.Duration)       {}
func (quiet) ProbeDone(uint64, time.Duration, error) {}
func (quiet) SlowHandler(uint64, time.Duration)      {}
func (quiet) Overdue(string, time.Duration)          {}
func (quiet) Await(done <-chan struct{}, _ string)   { <-done }

// Redial cuts a silent peer at once. A limit that has grown does not change when that is.
func TestAPeerIsSilentAfterHalfOfTheFirstLimit(t *testing.T) {
	for p := range mostPatience + 1 {
		synctest.Test(t, func(t *testing.T) {
			fake := conntest.NewFake(&conntest.FakeOptions{Pings: true, Transport: true})
			fake.Mute()
			shared := Shared{Liveness: &LivenessOptions{Limit: 30 * time.Second, Now: time.Now}, Report: quiet{}}
			shared.patience.Store(uint32(p))
			var life link.Life
			var l link.Link
			var w Liveness
			l.Begin(fake.Conn(), &life, budget.Window{})
			w.Prepare(&shared, l.Conn)
			w.Start(&l)
			time.Sleep(15*time.Second - time.Nanosecond)
			require.False(t, w.Silent())
			time.Sleep(time.Nanosecond)
			require.True(t, w.Silent())
			l.Cut(net.ErrClosed)
			w.Stop()
		})
	}
}
