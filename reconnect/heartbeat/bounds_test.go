package heartbeat_test

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/reconnect/heartbeat"
)

// timeBound is a time that an option sets, or that the documentation names.
type timeBound struct {
	name string
	n    time.Duration

	// cut returns the connection which is cut n after now, and which is being read.
	cut func(t *testing.T) *conntest.Fake
}

const every = 10 * time.Second

// The time without a message is measured in steps of half of Every.
var timeBounds = []timeBound{
	{"Every", 2 * every, func(t *testing.T) *conntest.Fake {
		fake := conntest.NewFake(nil)
		reads(t, over(t, fake, every))
		return fake
	}},
	{"Every, since a message just before a step", 2*every + 1, func(t *testing.T) *conntest.Fake {
		return heardAt(t, every-1)
	}},
	{"Every, since a message just after a step", 2*every + every/2 - 1, func(t *testing.T) *conntest.Fake {
		return heardAt(t, every+1)
	}},
	{"Every, since a Read just before a step", every + every/2 + 1, func(t *testing.T) *conntest.Fake {
		fake := conntest.NewFake(nil)
		c := over(t, fake, every)
		time.Sleep(every - 1)
		reads(t, c)
		return fake
	}},
	{"an answer that cannot be written", time.Second, func(t *testing.T) *conntest.Fake { return broken(t, 0) }},
	{"an answer that cannot be written, before a late server", time.Second, func(t *testing.T) *conntest.Fake {
		return broken(t, time.Second/5)
	}},
	{"an answer that cannot be written, before a step", time.Second, func(t *testing.T) *conntest.Fake {
		return broken(t, 9*time.Second/5)
	}},
}

// A connection that is cut after a time lives a nanosecond before that.
func TestTimesAreExact(t *testing.T) {
	for _, b := range timeBounds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				synctest.Test(t, func(t *testing.T) {
					fake := b.cut(t)
					time.Sleep(k)
					synctest.Wait()
					require.Equal(t, k >= b.n, fake.Closed(), "after %v of %v", k, b.n)
				})
			}
		})
	}
}

// reads reads c until it ends. The end of the test closes c.
func reads(t *testing.T, c conn.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := c.Read(nil); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		c.CloseNow()
		<-done
	})
}

// heardAt returns a connection that gets its one message now, at this time after the dial.
func heardAt(t *testing.T, at time.Duration) *conntest.Fake {
	fake := conntest.NewFake(nil)
	reads(t, over(t, fake, every))
	time.Sleep(at)
	fake.Deliver(conn.TextMessage("one"))
	synctest.Wait()
	return fake
}

// broken returns a connection whose response to a heartbeat fails now.
func broken(t *testing.T, every time.Duration) *conntest.Fake {
	fake := conntest.NewFake(nil)
	reads(t, dialed(t, mute{fake, errors.New("broken pipe")}, every))
	fake.Deliver(conn.TextMessage("ping"))
	return fake
}

func TestLeastEveryFindsServerLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := over(t, conntest.NewFake(nil), 1).Read(nil)
		require.ErrorIs(t, err, heartbeat.ErrLate)
	})
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{"": reflect.TypeFor[heartbeat.Dialer]()}
	require.Empty(t, numeric.WithoutRow(options, timeBounds))
}
