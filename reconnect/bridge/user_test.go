package bridge_test

// What the first programs of users have shown.

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
)

// A reader that is behind meets the seam after the subscription of the next session.
func TestARefetchCountsForTheSeamOfAnEarlierSession(t *testing.T) {
	withStore(t, &store{last: 7}, &options{AwaitSubscribed: true}, func(s *scene) {
		s.b.Refetch("a", 2)
		s.want("a: stale 6-", "a: past 6", "a: past 7", "a: healed 7")
		s.seam(reconnect.Seam{Lost: 1}) // of session 1
		s.want("a: stale 8-", "a: healed 7")
		s.seam(reconnect.Seam{Lost: 1}) // of session 2
		time.Sleep(time.Hour)
		s.want("a: stale 8-")
	})
}

func TestAStreamThatIsNotWantedAnyMoreIsForgotten(t *testing.T) {
	var wanted atomic.Bool
	wanted.Store(true)
	p := &store{last: 9, takes: time.Second, errs: []error{errFetch, errFetch, errFetch}}
	withStore(t, p, &options{Wanted: func(string) bool { return wanted.Load() }}, func(s *scene) {
		wanted.Store(false)
		s.send(item{Key: "a", Last: 6})
		s.want(`other: a "" 0 6`)
		require.Zero(t, s.b.Stats().Streams)
		wanted.Store(true)
		s.b.Refetch("a", 0)
		time.Sleep(500 * time.Millisecond) // the first call is under way, and will fail
		require.Equal(t, 1, s.b.Stats().Streams)
		wanted.Store(false)
		time.Sleep(time.Hour)
		require.Zero(t, s.b.Stats().Streams)
		require.Equal(t, 1, s.calls())
	})
}

// sliceSource is a Source that == cannot compare.
type sliceSource []*scriptedSource

func (s sliceSource) Read(ctx context.Context, buf []byte) (reconnect.Message, error) {
	return s[0].Read(ctx, buf)
}

func (s sliceSource) Await(ctx context.Context, want reconnect.State) error {
	return s[0].Await(ctx, want)
}

func (s sliceSource) State() reconnect.State { return s[0].State() }

func TestASourceThatCannotBeComparedCountsAsAnother(t *testing.T) {
	withStore(t, &store{last: 7}, &options{}, func(s *scene) {
		s.live("a", 6)
		s.want("a: live 6")
		s.stop()
		<-s.ended
		var got []string
		for range 2 {
			ctx, stop := context.WithCancel(s.t.Context())
			defer stop()
			for e, err := range s.b.Events(ctx, sliceSource{s.source}) {
				if err != nil {
					break
				}
				if got = append(got, eventWords(e)); e.Kind == bridge.EventHealed {
					stop()
				}
			}
		}
		require.Equal(t, []string{"a: stale 7-", "a: past 7", "a: healed 7", "a: stale 8-", "a: healed 7"}, got)
		s.ended <- nil
	})
}
